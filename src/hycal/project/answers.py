"""Answers to images: ranked classes with probabilities, the evidence for each, and a map of all classes.

A `Predictor` answers files one after the other: the first answer comes before the last image is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.algebra.evidence import ScoreParts
from hycal.embedding.pipeline import Streamed, stream
from hycal.embedding.sources import ImageFile
from hycal.embedding.store import EmbeddingStore
from hycal.encoders.encoder import Encoder
from hycal.errors import HyCalError
from hycal.project.examples import ClassExamples, Example
from hycal.project.state import State
from hycal.uncertainty.calibration import Calibration
from hycal.uncertainty.unknown import Familiarity, rejected
from hycal.validation import Doubles, Floats, Label
from hycal.views.familiarity import ViewFamiliarity

NEIGHBOURS = 3
_NOTHING = 1e-9
ERROR = 0.05  # share of learned images that may be called unknown
_BATCH = 16


@dataclass(frozen=True)
class Neighbour:
    """A learned image near the query, and the cosine of their embeddings."""

    label: Label
    similarity: float
    example: Example


@dataclass(frozen=True)
class EvidencePart:
    """One kind of evidence for a class; `hycal.algebra.evidence.ScorePart` says what the fields are."""

    name: str
    share: float
    measure: float | None
    weight: float | None


@dataclass(frozen=True)
class Evidence:
    """Why a class scored what it did."""

    shots: int  # images learned of the class
    nearest: tuple[Neighbour, ...]  # its learned images nearest to the query
    quantity: str = ""  # what the parts add up to: "score" or "evidence"; "" for methods without parts
    parts: tuple[EvidencePart, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """One class that an image may show."""

    label: Label
    score: float
    probability: float
    evidence: Evidence | None = None


Answer = tuple[Candidate, ...]


@dataclass(frozen=True, eq=False)
class Ranking:
    """The best classes of many embeddings, best first: arrays of shape (n, top), columns as in `State.labels`."""

    columns: npt.NDArray[np.intp]
    scores: npt.NDArray[Any]
    probabilities: Doubles

    @classmethod
    def of(cls, scores: npt.NDArray[Any], *, top: int, calibration: Calibration) -> Ranking:
        """Return the `top` classes by scores of shape (n, C)."""
        best = np.argsort(-scores, axis=1, kind="stable")[:, :top]
        chances = calibration.probabilities(scores)
        return cls(best, np.take_along_axis(scores, best, axis=1), np.take_along_axis(chances, best, axis=1))

    def part(self, rows: slice, *, top: int) -> Ranking:
        """Return the ranking of some of the embeddings, cut to `top` classes."""
        return Ranking(self.columns[rows, :top], self.scores[rows, :top], self.probabilities[rows, :top])

    def __iter__(self) -> Iterator[list[tuple[int, float, float]]]:
        """Yield column, score and probability of the best classes of each embedding."""
        for columns, scores, chances in zip(
            self.columns.tolist(), self.scores.tolist(), self.probabilities.tolist(), strict=True
        ):
            yield list(zip(columns, scores, chances, strict=True))


def rank(state: State, rows: npt.ArrayLike, *, top: int = 5, calibration: Calibration | None = None) -> Ranking:
    """Return the `top` classes for each embedding; parameters as `answer`."""
    _check_classes(state)
    scores = state.classifier.decision_function(rows)
    return Ranking.of(scores, top=top, calibration=_calibration(state, calibration))


def answer(
    state: State, rows: npt.ArrayLike, *, top: int = 5, why: bool = False, calibration: Calibration | None = None
) -> list[Answer]:
    """Return the `top` classes for each embedding, best first.

    With `why`, every candidate has its evidence. `calibration` turns scores into probabilities; by default it is the
    model's own, which the first call for each state fits.
    """
    _check_classes(state)
    queries = np.asarray(rows, dtype=np.float32)
    if not len(queries):
        return []
    classifier = state.classifier
    found = classifier.score_parts(queries) if why else None
    scores = classifier.decision_function(queries) if found is None else found.scores
    return [
        tuple(
            Candidate(
                state.labels[column], score, chance, _evidence(state, queries, row, column, found) if why else None
            )
            for column, score, chance in ranked
        )
        for row, ranked in enumerate(Ranking.of(scores, top=top, calibration=_calibration(state, calibration)))
    ]


def _check_classes(state: State) -> None:
    if not state.classes:
        raise HyCalError("This model has no classes yet, so there is nothing to choose from. Learn a folder first.")


def _calibration(state: State, given: Calibration | None) -> Calibration:
    return state.classifier.calibration_ if given is None else given


def nearest(
    query: Floats, label: Label, class_: ClassExamples, most: int, views: Sequence[slice]
) -> tuple[Neighbour, ...]:
    """Return the `most` examples of a class with the largest cosine to a query; of several views, the mean of them.

    Views that the query or the example lacks do not count.
    """
    parts = [class_.rows[:, view] @ query[view] for view in views]
    both = [class_.rows[:, view].any(axis=1) & query[view].any() for view in views]
    similarities = np.sum(parts, axis=0) / np.maximum(np.sum(both, axis=0), 1)
    order = np.argsort(-similarities, kind="stable")[:most]
    return tuple(Neighbour(label, float(similarities[number]), class_.examples[number]) for number in order)


def _evidence(state: State, queries: Floats, row: int, column: int, found: ScoreParts | None) -> Evidence:
    label = state.labels[column]
    class_ = state.classes[label]
    neighbours = nearest(queries[row], label, class_, NEIGHBOURS, state.space.columns)
    if found is None:
        return Evidence(class_.count, neighbours)
    encoders = {f"view {number}": part.name for number, part in enumerate(state.space.parts, start=1)}
    parts = tuple(
        EvidencePart(
            encoders.get(part.name) or part.name,
            float(part.share[row, column]),
            None if part.measure is None else float(part.measure[row, column]),
            None if part.weight is None else float(part.weight[column]),
        )
        for part in found.parts
    )
    return Evidence(class_.count, neighbours, found.quantity, parts)


def find_unknown(
    state: State,
    rows: Sequence[Floats] | Floats,
    error: float | None,
    familiarity: Familiarity | ViewFamiliarity | None = None,
) -> Sequence[bool | None]:
    """Return which embeddings fit no learned class; None if that was not asked (no `error`), or cannot be said.

    `error` is the share of learned images that may be called unknown. `familiarity` is by default the model's own.
    """
    if not error or not len(rows) or not state.classes:
        return [None] * len(rows)
    known = state.classifier.familiarity_ if familiarity is None else familiarity
    if not len(known.held_out):  # no class has two images that differ
        return [None] * len(rows)
    return rejected(known(state.classifier.check_queries(rows)), known.threshold(error)).tolist()


def class_map(state: State) -> dict[Label, tuple[float, float]]:
    """Return a point for each class that has images, centred, with the farthest coordinate at 1.

    Equal models have equal maps. It takes O(C d² + d³), whatever the number of images.
    """
    labels = [label for label in state.labels if state.classes[label].count]
    if not labels:
        return {}
    means = np.stack([state.classes[label].record.mean for label in labels])
    means -= means.mean(axis=0)
    _, axes = np.linalg.eigh(means.T @ means)
    points = means @ axes[:, :-3:-1]
    points *= np.sign(points[np.abs(points).argmax(axis=0), (0, 1)])  # eigenvectors come with either sign
    farthest = np.abs(points).max()
    points = points / farthest if farthest > _NOTHING else np.zeros_like(points)
    return {label: (float(x), float(y)) for label, (x, y) in zip(labels, points, strict=True)}


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

    def predict(
        self, files: Iterable[Path], encoder: Encoder, *, store: EmbeddingStore | None = None
    ) -> Iterator[Prediction]:
        """Yield the prediction for each file, in order.

        `encoder` is that of the model, `store` the embedding cache.
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
        found = zip(answers, find_unknown(self.state, rows, self.error), strict=True)
        for name, item in zip(names, batch, strict=True):
            if item.row is None:
                yield Prediction(name, (), item.problem)
            else:
                best, unknown = next(found)
                yield Prediction(name, best, None, unknown)
