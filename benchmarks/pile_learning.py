"""Measures for `benchmarks.pile`: does the pile itself sharpen the model, and how many images are sorted wrong?

Learning from the pile: images that the model is sure of (an expected error of 2%) are learned under their predicted
labels, so that they sharpen means and covariances. Leave-one-out accuracy of the labelled images, by the model with and
without the pile, decides whether to keep them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.pile_problems import Pile, unlearned
from hycal import HierarchicalHyCal
from hycal.base import IncrementalClassifier
from hycal.pile.sorting import decide
from hycal.pile.suggestion import suggest
from hycal.validation import Floats, Label

_SURE = 0.02
ERRORS = (0.02, 0.05)


def taught(one: Pile, labels: int) -> list[int]:
    """Return the rows that a person labels: half by suggestions without a model, half by suggestions with one."""
    first = suggest(one.X, labels * one.classes // 2).tolist()
    return first + suggest(one.X, labels * one.classes - len(first), one.learned(first)).tolist()


def learning_cells(one: Pile, labels: int) -> list[float]:
    """Return accuracy and leave-one-out accuracy without and with the pile, and the accuracy of what that chooses."""
    rows = np.array(taught(one, labels))
    base = one.learned(rows)
    rest = np.setdiff1d(np.arange(len(one.y)), rows)
    found = decide(base, one.X[rest], error=_SURE)
    sure = [number for number, decision in enumerate(found) if decision.place == "sorted"]
    names: list[Label] = [*one.y[rows].tolist(), *(found[number].label for number in sure)]
    X = np.concatenate([one.X[rows], one.X[rest[sure]]])
    sharper = HierarchicalHyCal().fit(X, names)
    plain, more = (100.0 * _left_out(classifier, one.X[rows]) for classifier in (base, sharper))
    before, after = (one.domain.accuracy(classifier) for classifier in (base, sharper))
    return [before, after, plain, more, after if more > plain else before]


def _left_out(classifier: IncrementalClassifier, labelled: npt.NDArray[np.float32]) -> float:
    """Return the leave-one-out accuracy of the labelled samples; the samples of the pile stay in the model."""
    stacked = classifier.records_.stacked()
    is_labelled = np.isclose((stacked @ labelled.T).max(axis=1), 1.0, atol=1e-6)
    own = np.repeat(np.arange(len(classifier.classes_)), classifier.counts_)
    several = is_labelled & (classifier.counts_[own] > 1)
    scores = classifier.leave_one_out(np.flatnonzero(several)).scores
    right = int(np.sum(scores.argmax(axis=1) == own[several]))
    return right / int(is_labelled.sum())  # the only sample of a class is never right


def sorting_cells(one: Pile, labels: int) -> list[float]:
    """Return what `_sorted` measures, with labels for every class."""
    rows = taught(one, labels)
    rest = np.setdiff1d(np.arange(len(one.y)), rows)
    return _sorted(one.learned(rows), one.X[rest], one.y[rest])


def strangers_cells(one: Pile, labels: int) -> list[float]:
    """Return what `_sorted` measures with 30% of the classes unlearned."""
    problem = unlearned(one.domain, one.seed, shots=labels)
    return _sorted(problem.classifier, problem.X, problem.y)


def _sorted(classifier: IncrementalClassifier, X: Floats, y: npt.NDArray[np.str_]) -> list[float]:
    """Return for each error rate the share of wrong images in the class folders, and of images that are put aside.

    After these, the same if every image is taken to be of a learned class; then the number of images.
    """
    cells: list[float] = []
    for unknown in (0.05, None):
        for error in ERRORS:
            found = decide(classifier, X, error=error, unknown=unknown)
            right = [decision.label == label for decision, label in zip(found, y, strict=True)]
            sorted_ = [each for each, decision in zip(right, found, strict=True) if decision.place == "sorted"]
            wrong = 1.0 - float(np.mean(sorted_)) if sorted_ else 0.0
            cells += [100.0 * wrong, 100.0 * (1.0 - len(sorted_) / len(found))]
    return [*cells, float(len(y))]
