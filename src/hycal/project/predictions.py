"""Predictions for images, one after the other: the first answer comes before the last image is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from hycal.embedding.pipeline import Streamed, stream
from hycal.embedding.sources import ImageFile
from hycal.embedding.store import EmbeddingStore
from hycal.encoders.encoder import Encoder
from hycal.project.answers import Answer, answer
from hycal.project.state import State
from hycal.uncertainty.unknown import check_share, rejected
from hycal.validation import Floats

ERROR = 0.05  # share of learned images that may be called unknown
_BATCH = 16


@dataclass(frozen=True)
class Prediction:
    """The prediction for one image."""

    file: str
    answer: Answer  # the classes that the image may show, best first; empty if the file cannot be used
    problem: str | None = None  # why the file cannot be used
    # Whether the image fits no learned class; None if that was not asked, or cannot be said because no class has two
    # images that differ.
    unknown: bool | None = None


@dataclass(frozen=True)
class Predictor:
    """Predicts the classes of images in memory that does not grow with their number."""

    state: State
    top: int = 5  # how many classes each answer has
    why: bool = False  # add the evidence to each class
    # Share of learned images that may be called unknown; None: do not look for unknown images.
    error: float | None = ERROR

    def check(self) -> None:
        """Raise if `error` is not between 0 and 1, before any image is read."""
        if self.error is not None:
            check_share("error", self.error)

    def predict(
        self, files: Iterable[Path], encoder: Encoder, *, store: EmbeddingStore | None = None
    ) -> Iterator[Prediction]:
        """Yield the prediction for each file, in order.

        Parameters
        ----------
        encoder : Encoder
            The encoder of the model.
        store : EmbeddingStore, optional
            The embedding cache.
        """
        waiting: list[Path] = []

        def sources() -> Iterator[ImageFile]:
            for file in files:
                waiting.append(file)
                yield ImageFile(file)

        streamed = stream(sources(), encoder, store=store)
        while batch := list(islice(streamed, _BATCH)):
            names = [str(waiting.pop(0)) for _ in batch]
            yield from self._predict_batch(names, batch)

    def _predict_batch(self, names: list[str], batch: list[Streamed]) -> Iterator[Prediction]:
        usable = [item.row for item in batch if item.row is not None]
        rows = np.stack(usable) if usable else np.empty((0, self.state.space.dimension), np.float32)
        answers = answer(self.state, rows, top=self.top, why=self.why) if usable else []
        found = zip(answers, self._unknown(rows), strict=True)
        for name, item in zip(names, batch, strict=True):
            if item.row is None:
                yield Prediction(name, (), item.problem)
            else:
                best, unknown = next(found)
                yield Prediction(name, best, None, unknown)

    def _unknown(self, rows: Floats) -> list[bool | None]:
        known = self.state.classifier.familiarity_ if self.error is not None and len(rows) else None
        if self.error is None or known is None or not len(known.held_out):
            return [None] * len(rows)
        return rejected(known(rows), known.threshold(self.error)).tolist()
