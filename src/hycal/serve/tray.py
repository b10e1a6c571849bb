"""The images that were seen and not learned yet: embedded once, at hand by their content hash."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

from hycal.project import Example


class Tray:
    """The last images that were seen; when it is full, those that were touched longest ago go.

    Examples
    --------
    >>> import numpy as np
    >>> tray = Tray(most=2)
    >>> one, two, three = (Example(np.eye(3, dtype=np.float32)[i]) for i in range(3))
    >>> tray.put([one, two]); tray.get(one.identity) is one
    True
    >>> tray.put([three]); tray.get(two.identity) is None
    True
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._examples: OrderedDict[bytes, Example] = OrderedDict()
        self._touching = threading.Lock()

    def put(self, examples: Iterable[Example]) -> None:
        """Keep `examples`."""
        with self._touching:
            for example in examples:
                self._examples[example.identity] = example
                self._examples.move_to_end(example.identity)
            while len(self._examples) > self._most:
                self._examples.popitem(last=False)

    def get(self, identity: bytes) -> Example | None:
        """Return the image of this content hash, if it is still there."""
        with self._touching:
            if identity in self._examples:
                self._examples.move_to_end(identity)
            return self._examples.get(identity)

    def drop(self, identities: Iterable[bytes]) -> None:
        """Forget these images."""
        with self._touching:
            for identity in identities:
                self._examples.pop(identity, None)
