"""The lanes of a run: one for each encoder that takes part, with the images that wait for it and its new rows.

A lane encodes only what its own store lacks. So an image that one part of a combined encoder has seen before is
decoded once, and encoded by the other parts alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from PIL import Image

from hycal.embedding.store import EmbeddingStore, JoinedStore
from hycal.encoders.encoder import Encoder, SideBySide, present_parts, split_inputs
from hycal.errors import HyCalError
from hycal.validation import Floats

_ROWS_PER_SHARD = 1024
_SECONDS_PER_SHARD = 15.0  # the most work that a killed run can lose


@dataclass(eq=False)
class Lane:
    """One encoder of a run; only the calling thread changes it."""

    encoder: Encoder
    store: EmbeddingStore  # the rows of this encoder
    known: set[bytes]  # content hashes of the images that have a row
    waiting: dict[bytes, Floats] = field(default_factory=dict)  # inputs that wait for their batch to fill
    fresh: dict[bytes, Floats] = field(default_factory=dict)  # new rows that are not in the store yet
    flushed_at: float = field(default_factory=time.monotonic)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of the input of one image."""
        return self.encoder.preprocess(Image.new("RGB", (64, 64), "grey")).shape

    def add(self, key: bytes, tensor: Floats) -> bool:
        """Let an image wait for its batch; return whether it is new."""
        if key in self.known or key in self.waiting:
            return False
        self.waiting[key] = tensor
        return True

    def encode_waiting(self) -> dict[bytes, str]:
        """Encode the images that wait; return the reason for each that has no row."""
        if not self.waiting:
            return {}
        keys = list(self.waiting)
        batch = np.stack(list(self.waiting.values()))
        rows: Sequence[Floats | str]
        try:
            rows = list(self.encoder.encode(batch))
        except HyCalError:  # one image may spoil its batch
            rows = _encode_one_by_one(self.encoder, batch)
            if all(isinstance(row, str) for row in rows) and not _works(self.encoder):
                raise
        self.waiting.clear()
        unusable = {}
        for key, row in zip(keys, rows, strict=True):
            if isinstance(row, str):
                unusable[key] = f"the encoder refused it: {row}"
            elif np.isfinite(row).all() and row.any():
                self.fresh[key] = row
                self.known.add(key)
            else:
                unusable[key] = "the encoder gave no finite, non-zero vector for it"
        if len(self.fresh) >= _ROWS_PER_SHARD or time.monotonic() - self.flushed_at > _SECONDS_PER_SHARD:
            self.flush()
        return unusable

    def flush(self) -> None:
        """Write the new rows to the store."""
        if self.fresh:
            self.store.add(list(self.fresh), np.stack(list(self.fresh.values())))
            self.fresh.clear()
        self.flushed_at = time.monotonic()

    def row(self, key: bytes) -> Floats:
        """Return the row of an image that is known."""
        return self.fresh[key] if key in self.fresh else self.store.get([key])[0]


def lanes_of(encoder: Encoder, store: EmbeddingStore) -> list[Lane]:
    """Return a lane for each part of an encoder that is here, with its store."""
    stores = store.parts if isinstance(store, JoinedStore) else (store,)
    return [Lane(part, own, own.known()) for part, own in zip(present_parts(encoder), stores, strict=True)]


@dataclass(frozen=True)
class Inputs:
    """The preprocessing of the lanes that lack an image."""

    lanes: Sequence[Lane]

    @property
    def preprocess(self) -> Callable[[Image.Image], Floats]:
        """The function from one image to the inputs of the lanes, of several one after the other; picklable."""
        functions = tuple(lane.encoder.preprocess for lane in self.lanes)
        return functions[0] if len(functions) == 1 else SideBySide(functions)

    def by_lane(self, tensor: Floats) -> list[tuple[Lane, Floats]]:
        """Return the input of each lane."""
        if len(self.lanes) == 1:
            return [(self.lanes[0], tensor)]
        return list(zip(self.lanes, split_inputs(tensor, [lane.shape for lane in self.lanes]), strict=True))


def _encode_one_by_one(encoder: Encoder, batch: Floats) -> list[Floats | str]:
    """Return for each image its row, or the reason why the encoder refuses it."""
    rows: list[Floats | str] = []
    for image in batch:
        try:
            rows.append(encoder.encode(image[None])[0])
        except HyCalError as reason:
            rows.append(str(reason))
    return rows


def _works(encoder: Encoder) -> bool:
    """Return whether the encoder accepts a plain grey image; if not, the encoder is at fault and not the images."""
    try:
        encoder.encode(encoder.preprocess(Image.new("RGB", (64, 64), "grey"))[None])
    except HyCalError:
        return False
    return True
