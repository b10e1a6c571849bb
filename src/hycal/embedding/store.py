"""What the pipeline needs of a place for rows, and the simplest such place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from hycal.embedding.decoding import DECODER
from hycal.encoders.protocol import Encoder
from hycal.validation import Floats


def space_of(encoder: Encoder) -> str:
    """Return the name of the space that images end in: the encoder's fingerprint and how we decode for it."""
    return f"{encoder.fingerprint}/decoder-{DECODER}"


class EmbeddingStore(Protocol):
    """Rows of one space by the content hash of their image."""

    @property
    def fingerprint(self) -> str:
        """The space, as `space_of` names it."""

    def known(self) -> set[bytes]:
        """Return the content hashes that have a row."""

    def get(self, keys: Sequence[bytes]) -> Floats:
        """Return the rows of `keys`, in their order."""

    def add(self, keys: Sequence[bytes], rows: Floats) -> None:
        """Keep `rows`."""


class MemoryStore:
    """Rows that are gone with the process; for a few images that nobody asks for again."""

    def __init__(self, encoder: Encoder) -> None:
        self.fingerprint = space_of(encoder)
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
