"""Advice from the accuracy of a model on its own images, each judged by a model that never saw it.

Are there enough images of a class? Are they near-duplicates? Which classes are confused? Which images look mislabelled?
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hycal.errors import HyCalError
from hycal.project.evaluation import Confusion, Score, confusions
from hycal.project.examples import Example
from hycal.project.state import State
from hycal.uncertainty.cross_validation import CrossValidation, Estimate, cross_validate
from hycal.uncertainty.near_duplicates import duplicate_groups
from hycal.validation import Floats, Label, unit_queries

FEW = 5  # images that differ; an estimate from fewer is too uncertain
GOOD = 0.9
_ALIKE = 1 / 3  # of the images of either class are taken for the other: perhaps the two are one
_SMALLEST_ENCODER = "builtin"
#: Where to measure whether another encoder would pay: a model has no images, so their folder must be named.
ENCODER_HINT = (
    "a stronger encoder may be better: hycal encoders get clip-vit-b16-w8, then hycal advise MODEL --images FOLDER "
    "measures it on a sample of these images"
)
_NEIGHBOURS = 5
_AT_ONCE = 256


@dataclass(frozen=True)
class ClassAdvice:
    """Advice on one class."""

    label: Label
    shots: int  # images of the class
    distinct: int  # The same, where near-duplicates count as one. A class of one cannot be judged without it.
    left_out: Score  # images that are right, each judged by a model without it; 0 of 0 if the class cannot be judged
    estimate: Estimate  # the accuracy on new images of the class, with its interval
    taken_for: Label | None  # the class it is most often confused with
    advice: str


@dataclass(frozen=True)
class Suspect:
    """A learned image that looks like another class."""

    label: Label
    looks_like: Label
    example: Example
    similarity: float  # cosine to the nearest image of `looks_like`
    own_similarity: float  # cosine to the nearest other image of its own class


@dataclass(frozen=True)
class Duplicates:
    """Learned images of one class that are nearly the same."""

    label: Label
    examples: tuple[Example, ...]

    @property
    def identities(self) -> list[bytes]:
        """Content hashes of the images."""
        return [example.identity for example in self.examples]


@dataclass(frozen=True)
class Advice:
    """Advice on a whole model."""

    overall: Score  # images that are right, each judged by a model without it
    estimate: Estimate  # the accuracy on new images like those of the judged classes, with its interval
    classes: tuple[ClassAdvice, ...]
    confusions: tuple[Confusion, ...]
    suspects: tuple[Suspect, ...]
    duplicates: tuple[Duplicates, ...]  # the largest groups first
    hints: tuple[str, ...]  # what would help the model as a whole


def advise(state: State) -> Advice:
    """Return advice on a model with at least two classes.

    The model is derived at most five times without some of its images. Classes of one image, or of near-duplicates
    alone, are not judged: without them the class would not exist.
    """
    state.classifier.records_.check_samples("judge its learned images")
    if len(state.labels) < 2:
        raise HyCalError("Advice needs two classes at least, or nothing can be mistaken. Learn another class first.")
    records = state.classifier.records_
    judged, groups = cross_validate(state.classifier.scorer, records), duplicate_groups(records)
    columns = np.repeat(np.arange(len(state.labels)), records.counts)
    found = Counter(
        (state.labels[truth], state.labels[answer]) for truth, answer in zip(judged.own, judged.answers, strict=True)
    )
    classes = tuple(
        _class_advice(label, groups[columns == column], judged, column, found)
        for column, label in enumerate(state.labels)
    )
    estimate = judged.estimate()
    return Advice(
        Score(int(judged.hits.sum()), len(judged.hits)),
        estimate,
        classes,
        confusions(found),
        _suspects(state, judged, columns),
        _duplicates(state, groups, columns),
        _hints(state, estimate),
    )


def _class_advice(
    label: Label,
    groups: npt.NDArray[np.intp],
    judged: CrossValidation,
    column: int,
    found: Mapping[tuple[Label, Label], int],
) -> ClassAdvice:
    own = judged.hits[judged.own == column]
    score, estimate = Score(int(own.sum()), len(own)), judged.estimate(column)
    worst = next((item for item in confusions(found) if item.truth == label), None)
    shots, distinct = len(groups), len(np.unique(groups))
    if worst is not None and _alike(worst, found):
        advice = f"hard to tell from {worst.answer}: add images that show the difference, or merge the two classes"
    else:
        advice = _advice(shots, distinct, estimate, worst, score)
    return ClassAdvice(label, shots, distinct, score, estimate, None if worst is None else worst.answer, advice)


def _alike(worst: Confusion, found: Mapping[tuple[Label, Label], int]) -> bool:
    """Whether many images of either class are taken for the other."""
    one, other = worst.truth, worst.answer
    pairs = (one, found.get((one, other), 0)), (other, found.get((other, one), 0))
    totals = {label: sum(count for (truth, _), count in found.items() if truth == label) for label, _ in pairs}
    return all(count >= max(_ALIKE * totals[label], 2) for label, count in pairs)


def _advice(shots: int, distinct: int, estimate: Estimate, worst: Confusion | None, score: Score) -> str:
    if shots == 1:
        return "one image cannot be judged: add some"
    if distinct == 1:
        return "near-duplicates alone cannot be judged: add images that differ"
    if distinct < FEW:
        few = "few images" if distinct == shots else "few images that differ"
        return f"{few}: add {FEW - distinct} or more, then ask again"
    if estimate.low >= GOOD:
        return "enough images"
    if estimate.accuracy >= GOOD:
        return f"good so far; more images would show whether it stays above {GOOD:.0%}"
    if 2 * distinct <= shots:
        return f"add more varied images: {shots} images show {distinct} different things"
    if worst is not None and worst.count > (score.total - score.right) / 2:
        return f"add images that tell it from {worst.answer}"
    return "add more varied images"


def _duplicates(state: State, groups: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]) -> tuple[Duplicates, ...]:
    """Return the groups of two or more near-duplicates, the largest first."""
    order = np.argsort(groups, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    found = [
        Duplicates(state.labels[columns[part[0]]], tuple(state.examples[number] for number in part))
        for part in parts
        if len(part) > 1
    ]
    return tuple(sorted(found, key=lambda group: (-len(group.examples), str(group.label), group.examples[0].name)))


def _hints(state: State, estimate: Estimate) -> tuple[str, ...]:
    """Return what would help a model that is not good, even at the upper end of its interval."""
    if not estimate.total or estimate.high >= GOOD:
        return ()
    hints = ["another method may be better: hycal methods MODEL compares them on these images"]
    if state.space.name == _SMALLEST_ENCODER:
        hints.append(ENCODER_HINT)
    return tuple(hints)


def _suspects(state: State, judged: CrossValidation, columns: npt.NDArray[np.intp]) -> tuple[Suspect, ...]:
    """Return the images that a model without them and their nearest neighbours both put in the same other class."""
    candidates = np.flatnonzero(~judged.hits)
    if not len(candidates):
        return ()
    rows = unit_queries(np.stack([example.row for example in state.examples]))  # with views, a row as a whole
    found = []
    for start in range(0, len(candidates), _AT_ONCE):
        part = candidates[start : start + _AT_ONCE]
        numbers = judged.rows[part]
        for number, answer, similarity in zip(numbers, judged.answers[part], rows[numbers] @ rows.T, strict=True):
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
