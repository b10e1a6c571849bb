"""Advice from the leave-one-out accuracy of a model on its own images.

Are there enough images of a class? Which classes are confused? Which images look mislabelled?
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hycal.errors import HyCalError
from hycal.project.evaluation import Confusion, Score, confusions
from hycal.project.examples import Example
from hycal.project.state import State
from hycal.validation import Floats, Label

FEW = 5  # images; an estimate from fewer is too uncertain
GOOD = 0.9
_NEIGHBOURS = 5
_AT_ONCE = 256


@dataclass(frozen=True)
class ClassAdvice:
    """Advice on one class: its leave-one-out accuracy, the class it is most often confused with, and what to do.

    A class of one image cannot be judged without it: `left_out` is then 0 of 0.
    """

    label: Label
    shots: int
    left_out: Score
    taken_for: Label | None
    advice: str


@dataclass(frozen=True)
class Suspect:
    """A learned image that looks like another class.

    Attributes
    ----------
    label, looks_like : label
    example : Example
    similarity : float
        Cosine to the nearest image of `looks_like`.
    own_similarity : float
        Cosine to the nearest other image of its own class.
    """

    label: Label
    looks_like: Label
    example: Example
    similarity: float
    own_similarity: float


@dataclass(frozen=True)
class Advice:
    """Advice on a whole model; `overall` is the estimated accuracy on new images like those of the judged classes."""

    overall: Score
    classes: tuple[ClassAdvice, ...]
    confusions: tuple[Confusion, ...]
    suspects: tuple[Suspect, ...]


@dataclass(frozen=True, eq=False)
class _Judged:
    """The learned images of classes with two or more: numbers, true and predicted columns, and which are right."""

    numbers: npt.NDArray[np.intp]
    columns: npt.NDArray[np.intp]
    predicted: npt.NDArray[np.intp]
    right: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, state: State, columns: npt.NDArray[np.intp]) -> _Judged:
        several = np.flatnonzero(np.bincount(columns, minlength=len(state.labels))[columns] > 1)
        left = state.classifier.leave_one_out(several)
        return cls(several, left.samples.own, left.scores.argmax(axis=1), left.hits)


def advise(state: State) -> Advice:
    """Return advice on a model with at least two classes.

    It costs about as much as one prediction for every learned image. The only image of a class is not judged: without
    it the class would not exist.
    """
    if len(state.labels) < 2:
        raise HyCalError("Advice needs two classes at least, or nothing can be mistaken. Learn another class first.")
    shots = [len(state.classes[label].examples) for label in state.labels]
    columns = np.repeat(np.arange(len(shots)), shots)
    left = _Judged.of(state, columns)
    found = Counter(
        (state.labels[truth], state.labels[answer]) for truth, answer in zip(left.columns, left.predicted, strict=True)
    )
    wrong = confusions(found)
    most: dict[Label, Confusion] = {}
    for item in wrong:
        most.setdefault(item.truth, item)
    classes = []
    for column, label in enumerate(state.labels):
        own = left.right[left.columns == column]
        score = Score(int(own.sum()), len(own))
        classes.append(
            ClassAdvice(label, shots[column], score, _taken_for(most.get(label)), _advice(score, most.get(label)))
        )
    overall = Score(int(left.right.sum()), len(left.right))
    return Advice(overall, tuple(classes), wrong, _suspects(state, left, columns))


def _taken_for(worst: Confusion | None) -> Label | None:
    return None if worst is None else worst.answer


def _advice(score: Score, worst: Confusion | None) -> str:
    if score.total == 0:
        return "one image cannot be judged: add some"
    if score.total < FEW:
        return f"few images: add {FEW - score.total} or more, then ask again"
    if score.accuracy >= GOOD:
        return "enough images"
    if worst is not None and worst.count > (score.total - score.right) / 2:
        return f"add images that tell it from {worst.answer}"
    return "add more varied images"


def _suspects(state: State, left: _Judged, columns: npt.NDArray[np.intp]) -> tuple[Suspect, ...]:
    """Return the images that the model without them and their nearest neighbours both put in the same other class."""
    candidates = np.flatnonzero(~left.right)
    if not len(candidates):
        return ()
    rows = np.stack([example.row for example in state.examples])
    found = []
    for start in range(0, len(candidates), _AT_ONCE):
        part = candidates[start : start + _AT_ONCE]
        numbers = left.numbers[part]
        for number, answer, similarity in zip(numbers, left.predicted[part], rows[numbers] @ rows.T, strict=True):
            similarity[number] = -np.inf
            suspect = _suspect(state, columns, number, answer, similarity)
            found += [] if suspect is None else [suspect]
    return tuple(sorted(found, key=lambda item: (item.own_similarity - item.similarity, item.example.name)))


def _suspect(
    state: State, columns: npt.NDArray[np.intp], number: int, answer: int, similarity: Floats
) -> Suspect | None:
    truth = columns[number]
    nearest = columns[np.argsort(-similarity)[:_NEIGHBOURS]]
    if (nearest == answer).sum() <= _NEIGHBOURS // 2 or (nearest == truth).any():
        return None
    own, other = (float(similarity[columns == column].max()) for column in (truth, answer))
    return Suspect(state.labels[truth], state.labels[answer], state.examples[number], other, own)
