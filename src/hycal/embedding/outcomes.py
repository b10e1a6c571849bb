"""What becomes of images on the way to embeddings: how far a run is, what was skipped and why, and the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hycal.embedding.sources import ImageSource
from hycal.embedding.store import EmbeddingStore
from hycal.validation import Floats


@dataclass(frozen=True)
class Skipped:
    """An image that has no embedding, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Tick:
    """How far a run is."""

    done: int
    total: int
    encoded: int
    skipped: int


@dataclass(frozen=True, eq=False)
class Embedded:
    """The result of a run.

    Attributes
    ----------
    rows : ndarray of shape (n, d)
        Unit embeddings of the images that could be used, in the order of the sources.
    kept : ndarray of shape (n,)
        Which source each row belongs to.
    skipped : tuple of Skipped
        The sources that have no row.
    encoded : int
        How many images were encoded now; the other rows came from the store, or are copies of one another.
    keys : tuple of bytes
        Content hash of each image that has a row.
    """

    rows: Floats
    kept: npt.NDArray[np.intp]
    skipped: tuple[Skipped, ...]
    encoded: int
    keys: tuple[bytes, ...]


@dataclass(eq=False)
class Outcomes:
    """What became of the sources so far: the hash of each, and why some have no row, by number or by hash."""

    keys: list[bytes] = field(default_factory=list)
    problems: dict[int, str] = field(default_factory=dict)
    unusable: dict[bytes, str] = field(default_factory=dict)

    @property
    def n_skipped(self) -> int:
        """How many have no row; copies count once."""
        return len(self.problems) + len(self.unusable)

    def embedded(self, sources: Sequence[ImageSource], store: EmbeddingStore, encoded: int) -> Embedded:
        """Return the result of a run, with the rows from `store`."""
        problems = {
            number: self.problems.get(number) or self.unusable[key]
            for number, key in enumerate(self.keys)
            if number in self.problems or key in self.unusable
        }
        kept = np.array([number for number in range(len(self.keys)) if number not in problems], dtype=np.intp)
        skipped = tuple(Skipped(sources[number].name, reason) for number, reason in problems.items())
        keys = tuple(self.keys[number] for number in kept)
        return Embedded(store.get(keys), kept, skipped, encoded, keys)
