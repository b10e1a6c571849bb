"""What the server keeps in memory: results for the last state of the model, and the last images that clients sent."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from hycal.parallel.threads import one_blas_thread
from hycal.project import ClassExamples, Example, State
from hycal.validation import Label

T = TypeVar("T")
Classes = Mapping[Label, ClassExamples]
ModelSetup = tuple[object, ...]  # `State.kind`: the method with its parameters, and the encoder

_ONE_IN = 10  # classes may have changed


def unchanged(before: Classes, now: Classes) -> bool:
    """Whether no class changed."""
    return _count_changed(before, now) == 0


def mostly_unchanged(before: Classes, now: Classes) -> bool:
    """Whether at most 10% of the classes changed."""
    return _ONE_IN * _count_changed(before, now) <= len(now)


def same_labels(before: Classes, now: Classes) -> bool:
    """Whether the labels are the same, and at most 10% of the classes changed."""
    return before.keys() == now.keys() and mostly_unchanged(before, now)


def _count_changed(before: Classes, now: Classes) -> int:
    return sum(now.get(label) is not before.get(label) for label in {**before, **now})


class CachedResult(Generic[T]):
    """A function of a state that keeps its last result. Callers wait while another caller computes it.

    `valid` says whether a result for the first classes is good enough for the second.
    """

    def __init__(
        self, function: Callable[[State], T], *, valid: Callable[[Classes, Classes], bool] = unchanged
    ) -> None:
        self._function = function
        self._valid = valid
        self._last: tuple[Classes, ModelSetup, T] | None = None
        self._checked: Classes | None = None  # the last result is valid for these; most requests have them
        self._first_kept = 0
        self._computing = threading.Lock()

    def __call__(self, state: State) -> T:
        """Return the result for `state`."""
        with self._computing:
            if self._last is not None and self._is_valid(self._last, state):
                found = self._last[2]
            else:
                with one_blas_thread():  # a product on all cores would delay the answers to others
                    found = self._function(state)
                if state.version >= self._first_kept:
                    self._last = state.classes, state.kind, found
            self._checked = state.classes if state.version >= self._first_kept else None
            return found

    def clear(self, version: int) -> None:
        """Drop the result, and keep none of a state before `version`: it would hold images that were forgotten."""
        with self._computing:
            self._first_kept, self._last, self._checked = version, None, None

    def _is_valid(self, last: tuple[Classes, ModelSetup, T], state: State) -> bool:
        return state.classes is self._checked or (last[1] == state.kind and self._valid(last[0], state.classes))

    def last(self, state: State) -> T:
        """Return the last result for the same method, however old it is; compute one for `state` if there is none."""
        last = self._last
        return self(state) if last is None or last[1] != state.kind else last[2]


class RecentImages:
    """The images that clients sent last, embedded, by content hash. When it is full, the least recently used go.

    >>> import numpy as np
    >>> images = RecentImages(most=2)
    >>> one, two, three = (Example(np.eye(3, dtype=np.float32)[i]) for i in range(3))
    >>> images.put([one, two]); images.get(one.identity) is one
    True
    >>> images.put([three]); images.get(two.identity) is None
    True
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._examples: OrderedDict[bytes, Example] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, examples: Iterable[Example]) -> None:
        """Keep `examples`."""
        with self._lock:
            for example in examples:
                self._examples[example.identity] = example
                self._examples.move_to_end(example.identity)
            while len(self._examples) > self._most:
                self._examples.popitem(last=False)

    def get(self, identity: bytes) -> Example | None:
        """Return the image of this content hash, or None."""
        with self._lock:
            if identity in self._examples:
                self._examples.move_to_end(identity)
            return self._examples.get(identity)

    def drop(self, identities: Iterable[bytes]) -> None:
        """Remove these images."""
        with self._lock:
            for identity in identities:
                self._examples.pop(identity, None)
