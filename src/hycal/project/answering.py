"""Answers to images, with the evidence: shares of cosine and distance, and the nearest learned images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hycal.classifiers import HyCal
from hycal.errors import HyCalError
from hycal.explaining import Explanation, explain
from hycal.project.examples import Example, Shelf
from hycal.project.state import State
from hycal.scoring import probabilities
from hycal.validation import Floats, Label

NEIGHBOURS = 3


@dataclass(frozen=True)
class Neighbour:
    """A learned image near the query, by the cosine of their embeddings."""

    label: Label
    similarity: float
    example: Example


@dataclass(frozen=True)
class Parts:
    """What HyCal's score s in [0, 1] is made of.

    Attributes
    ----------
    weight : float
        How much the distance counts; the rest is the cosine's.
    cosine, distance : float
        Cosine to the class mean, and squared Mahalanobis distance.
    cosine_share, distance_share : float
        What each adds to the score: (1 - w) Phi(cos) and w Phi(-m).
    """

    weight: float
    cosine: float
    distance: float
    cosine_share: float
    distance_share: float


@dataclass(frozen=True)
class Evidence:
    """Why a class scored what it did.

    Attributes
    ----------
    shots : int
        Images learned of the class.
    nearest : tuple of Neighbour
        Its learned images nearest to the query.
    parts : Parts or None
        None for methods other than HyCal.
    """

    shots: int
    nearest: tuple[Neighbour, ...]
    parts: Parts | None = None


@dataclass(frozen=True)
class Candidate:
    """One class that an image may show."""

    label: Label
    score: float
    probability: float
    evidence: Evidence | None = None


Answer = tuple[Candidate, ...]


def answer(state: State, rows: npt.ArrayLike, *, top: int = 5, why: bool = False) -> list[Answer]:
    """Return the `top` classes for each embedding, best first.

    Parameters
    ----------
    state : State
    rows : array-like of shape (n, d)
    top : int, default=5
    why : bool, default=False
        Add the evidence to every candidate.
    """
    if not state.shelves:
        raise HyCalError("This model has no classes yet, so there is nothing to choose from. Learn a folder first.")
    queries = np.asarray(rows, dtype=np.float32)
    if not len(queries):
        return []
    scores = state.classifier.decision_function(queries)
    chances = probabilities(scores)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    evidence = _Evidence(state, queries) if why else None
    return [
        tuple(
            Candidate(
                state.labels[column],
                float(scores[row, column]),
                float(chances[row, column]),
                None if evidence is None else evidence(row, column),
            )
            for column in map(int, columns)
        )
        for row, columns in enumerate(best)
    ]


def nearest(query: Floats, label: Label, shelf: Shelf, most: int) -> tuple[Neighbour, ...]:
    """Return the `most` examples of a class that are nearest to a unit query."""
    similarities = shelf.rows @ query
    order = np.argsort(-similarities, kind="stable")[:most]
    return tuple(Neighbour(label, float(similarities[number]), shelf.examples[number]) for number in order)


class _Evidence:
    """Evidence for a batch of queries; the parts of all scores are computed once."""

    def __init__(self, state: State, queries: Floats) -> None:
        self._state = state
        self._queries = queries
        classifier = state.classifier
        self._parts: Explanation | None = explain(classifier, queries) if isinstance(classifier, HyCal) else None

    def __call__(self, row: int, column: int) -> Evidence:
        label = self._state.labels[column]
        shelf = self._state.shelves[label]
        close = nearest(self._queries[row], label, shelf, NEIGHBOURS)
        return Evidence(len(shelf.examples), close, None if self._parts is None else _parts(self._parts, row, column))


def _parts(explanation: Explanation, row: int, column: int) -> Parts:
    weight = float(explanation.weight[column])
    return Parts(
        weight,
        float(explanation.cosine[row, column]),
        float(explanation.distance[row, column]),
        (1.0 - weight) * float(explanation.cosine_level[row, column]),
        weight * float(explanation.distance_level[row, column]),
    )
