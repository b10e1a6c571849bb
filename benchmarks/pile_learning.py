"""Measures for `benchmarks.pile`: does the pile itself sharpen the model, and how many images are sorted wrong?

Learning from the pile: all its images are learned under the labels that the model predicts, so that they sharpen means
and covariances. Labelled images that are held out decide whether to keep them: a quarter of those of each class at a
time is taken out, the rest labels the pile anew, and the held-out ones that the pile sets right are counted against
those that it spoils.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.pile_problems import Pile, unlearned
from hycal import HierarchicalHyCal
from hycal.base import IncrementalClassifier
from hycal.pile.sorting import decide
from hycal.pile.suggestion import suggest
from hycal.validation import Floats

_FOLDS = 4
ERRORS = (0.02, 0.05)

Names = npt.NDArray[np.str_]


def taught(one: Pile, labels: int) -> list[int]:
    """Return the rows that a person labels: half by suggestions without a model, half by suggestions with one."""
    first = suggest(one.X, labels * one.classes // 2).tolist()
    return first + suggest(one.X, labels * one.classes - len(first), one.learned(first)).tolist()


def learning_cells(one: Pile, labels: int) -> list[float]:
    """Return the accuracy and that expected, without and with the pile; held-out labels set right and spoiled; theirs.

    The last one is the accuracy of the model that the held-out labels choose.
    """
    rows = np.array(taught(one, labels))
    pile = np.delete(one.X, rows, axis=0)
    alone, sharper = _without_and_with(pile, one.X[rows], one.y[rows])
    before, after = (one.domain.accuracy(each) for each in (alone, sharper))
    said, promised = (
        100.0 * float(each.predict_proba(one.domain.queries).max(axis=1).mean()) for each in (alone, sharper)
    )
    right, spoiled = _proof(pile, one.X[rows], one.y[rows])
    return [before, said, after, promised, right, spoiled, after if right > spoiled else before]


def _without_and_with(pile: Floats, X: Floats, y: Names) -> tuple[IncrementalClassifier, IncrementalClassifier]:
    """Return the model of labelled images, and the one that has learned the pile under the labels of the first."""
    alone = HierarchicalHyCal().fit(X, y)
    return alone, HierarchicalHyCal().fit(np.concatenate([X, pile]), np.concatenate([y, alone.predict(pile)]))


def _proof(pile: Floats, X: Floats, y: Names) -> tuple[int, int]:
    """Return how many held-out images the pile sets right, and how many it spoils."""
    ranks = np.array([int(np.sum(y[:row] == y[row])) for row in range(len(y))])
    right = spoiled = 0
    for fold in range(_FOLDS):
        held = (ranks > 0) & (ranks % _FOLDS == fold)  # the first image of each class stays
        if not held.any():
            continue
        alone, sharper = (each.predict(X[held]) == y[held] for each in _without_and_with(pile, X[~held], y[~held]))
        right += int(np.sum(sharper & ~alone))
        spoiled += int(np.sum(alone & ~sharper))
    return right, spoiled


def sorting_cells(one: Pile, labels: int) -> list[float]:
    """Return what `_sorted` measures, with labels for every class."""
    rows = taught(one, labels)
    rest = np.setdiff1d(np.arange(len(one.y)), rows)
    return _sorted(one.learned(rows), one.X[rest], one.y[rest])


def strangers_cells(one: Pile, labels: int) -> list[float]:
    """Return what `_sorted` measures with 30% of the classes unlearned."""
    problem = unlearned(one.domain, one.seed, shots=labels)
    return _sorted(problem.classifier, problem.X, problem.y)


def _sorted(classifier: IncrementalClassifier, X: Floats, y: Names) -> list[float]:
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
