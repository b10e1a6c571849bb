"""What a run of the pipeline fills and returns: the store of rows, the progress, the result and the skipped images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from hycal.embedding.decoding import DECODER
from hycal.embedding.sources import ImageSource
from hycal.encoders.catalog import JOINED_BY
from hycal.encoders.encoder import CombinedEncoder, Encoder, present_columns, present_parts
from hycal.validation import Floats


def space_fingerprint(encoder: Encoder) -> str:
    """Return the name of an embedding space: the encoder's fingerprint and the version of the decoder.

    Of a combined encoder, the names of the spaces of its parts, joined by "+".
    """
    return JOINED_BY.join(f"{part}/decoder-{DECODER}" for part in encoder.fingerprint.split(JOINED_BY))


class EmbeddingStore(Protocol):
    """Rows of one space, by the content hash of their image."""

    @property
    def fingerprint(self) -> str:
        """The space, as `space_fingerprint` names it."""

    def known(self) -> set[bytes]:
        """Return the content hashes that have a row."""

    def get(self, keys: Sequence[bytes]) -> Floats:
        """Return the rows of `keys`, in their order."""

    def add(self, keys: Sequence[bytes], rows: Floats) -> None:
        """Keep `rows`."""


S = TypeVar("S", bound=EmbeddingStore)


class MemoryStore:
    """A store in memory, for a few images that are embedded once."""

    def __init__(self, encoder: Encoder) -> None:
        self.fingerprint = space_fingerprint(encoder)
        self._dimension = encoder.dimension
        self._rows: dict[bytes, Floats] = {}

    def known(self) -> set[bytes]:
        """Return the content hashes that have a row."""
        return set(self._rows)

    def get(self, keys: Sequence[bytes]) -> Floats:
        """Return the rows of `keys`, in their order."""
        rows = np.empty((len(keys), self._dimension), dtype=np.float32)
        for number, key in enumerate(keys):
            rows[number] = self._rows[key]
        return rows

    def add(self, keys: Sequence[bytes], rows: Floats) -> None:
        """Keep `rows`."""
        self._rows.update(zip(keys, rows, strict=True))


class JoinedStore(Generic[S]):
    """The stores of the parts of an encoder that are here; a row has them side by side, zeros for the other parts."""

    def __init__(self, encoder: Encoder, stores: Sequence[S]) -> None:
        self.fingerprint = space_fingerprint(encoder)
        self.parts: tuple[S, ...] = tuple(stores)
        self._columns = present_columns(encoder)
        self._dimension = encoder.dimension

    def known(self) -> set[bytes]:
        """Return the content hashes that every part has a row of."""
        return set.intersection(*(store.known() for store in self.parts))

    def __len__(self) -> int:
        return len(self.known())

    def get(self, keys: Sequence[bytes]) -> Floats:
        """Return the rows of `keys`, in their order."""
        rows = np.zeros((len(keys), self._dimension), dtype=np.float32)
        for own, store in zip(self._columns, self.parts, strict=True):
            rows[:, own] = store.get(keys)
        return rows

    def add(self, keys: Sequence[bytes], rows: Floats) -> None:
        """Keep the parts of `rows`."""
        for own, store in zip(self._columns, self.parts, strict=True):
            store.add(keys, rows[:, own])


def memory_store(encoder: Encoder) -> EmbeddingStore:
    """Return a store in memory for the rows of an encoder."""
    stores = [MemoryStore(part) for part in present_parts(encoder)]
    return JoinedStore(encoder, stores) if isinstance(encoder, CombinedEncoder) else stores[0]


@dataclass(frozen=True)
class Skipped:
    """An image that has no embedding, and the reason.

    Examples
    --------
    >>> Skipped("notes.txt", "no image").reason
    'no image'
    """

    name: str
    reason: str


@dataclass(frozen=True)
class Tick:
    """The progress of a run, as numbers of images."""

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
        Unit embeddings of the usable images, in the order of the sources.
    kept : ndarray of shape (n,)
        The number of the source of each row.
    skipped : tuple of Skipped
        The sources that have no row.
    encoded : int
        Images that this run encoded. The other rows come from the store, or belong to copies of an encoded image.
    keys : tuple of bytes
        Content hash of the image of each row.

    Examples
    --------
    >>> from hycal.embedding import ImageBytes, embed
    >>> from hycal.encoders import load_encoder
    >>> found = embed([ImageBytes("notes.txt", b"no image")], load_encoder("builtin"))
    >>> found.rows.shape, [skipped.name for skipped in found.skipped]
    ((0, 512), ['notes.txt'])
    """

    rows: Floats
    kept: npt.NDArray[np.intp]
    skipped: tuple[Skipped, ...]
    encoded: int
    keys: tuple[bytes, ...]


@dataclass(eq=False)
class Outcomes:
    """The sources of a run so far."""

    # Content hash of each source; empty for a source that cannot be read.
    keys: list[bytes] = field(default_factory=list)
    # Reason by source number, for sources that cannot be read or decoded.
    problems: dict[int, str] = field(default_factory=dict)
    # Reason by content hash, for images that have no embedding.
    unusable: dict[bytes, str] = field(default_factory=dict)

    @property
    def n_skipped(self) -> int:
        """Number of skipped images; copies of one unusable image count once."""
        return len(self.problems) + len(self.unusable)

    def embedded(self, sources: Sequence[ImageSource], store: EmbeddingStore, encoded: int) -> Embedded:
        """Return the result of the run, with the rows from `store`."""
        problems = {
            number: self.problems.get(number) or self.unusable[key]
            for number, key in enumerate(self.keys)
            if number in self.problems or key in self.unusable
        }
        kept = np.array([number for number in range(len(self.keys)) if number not in problems], dtype=np.intp)
        skipped = tuple(Skipped(sources[number].name, reason) for number, reason in problems.items())
        keys = tuple(self.keys[number] for number in kept)
        return Embedded(store.get(keys), kept, skipped, encoded, keys)
