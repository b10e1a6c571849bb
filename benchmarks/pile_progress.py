"""Measures for `benchmarks.pile`: does the accuracy expected of the rest hold, and do the labels to a target?

A person labels half an image for each class at a time, as `hycal.suggest` asks, up to eight for each class or half of
the pile. After each round the accuracy expected of all other images is compared with the truth.
"""

from __future__ import annotations

import numpy as np

from benchmarks.pile_problems import Pile
from hycal.pile.progress import LabelCurve, estimate_rest
from hycal.pile.suggestion import suggest
from hycal.uncertainty.cross_validation import Estimate

TARGETS = (0.8, 0.9, 0.95)
_MOST = 8  # labels for each class
_LEAST = 4  # labels in a round


def progress_cells(one: Pile) -> list[float]:
    """Return shares and sums over the rounds of a pile.

    In order: the share of intervals that hold the truth, their mean width, the mean error of the accuracy, all in
    percent; rounds before a target, those with a number of labels to it, those of them whose target was reached, and
    the sum of the logarithms of labels said by labels taken.
    """
    expected = [(labels, *_expected(one, rows)) for labels, rows in _labelled(one).items()]
    rounds = [(labels, estimate, truth) for labels, estimate, truth in expected if estimate is not None]
    held = [estimate.low <= truth <= estimate.high for _, estimate, truth in rounds]
    width = [estimate.high - estimate.low for _, estimate, _ in rounds]
    error = [estimate.accuracy - truth for _, estimate, truth in rounds]
    curve = [(labels, estimate.accuracy) for labels, estimate, _ in rounds]
    counts = np.sum([_counted(curve, target) for target in TARGETS], axis=0)
    return [*(100.0 * float(np.mean(each)) for each in (held, width, error)), *counts.tolist()]


def _labelled(one: Pile) -> dict[int, list[int]]:
    """Return the rows that are labelled after each round, by their number."""
    labelled: list[int] = []
    found: dict[int, list[int]] = {}
    while len(labelled) < min(_MOST * one.classes, len(one.y) // 2):
        classifier = one.learned(labelled) if labelled else None
        new = suggest(one.X, max(_LEAST, one.classes // 2), classifier).tolist()
        if not new:
            break
        labelled = labelled + new
        found[len(labelled)] = labelled
    return found


def _expected(one: Pile, rows: list[int]) -> tuple[Estimate | None, float]:
    """Return the accuracy expected of the rest, and the true one."""
    classifier, rest = one.learned(rows), np.setdiff1d(np.arange(len(one.y)), rows)
    return estimate_rest(classifier, one.X[rest]), float(np.mean(classifier.predict(one.X[rest]) == one.y[rest]))


def _counted(curve: list[tuple[int, float]], target: float) -> list[float]:
    """Return rounds before the target, those that say a number, those of them that reach it, and sums of logarithms."""
    reached = next((labels for labels, accuracy in curve if accuracy >= target), None)
    before = [each for each in curve if reached is None or each[0] < reached]
    so_far, said, known, logarithms = LabelCurve(), 0, 0, 0.0
    for labels, accuracy in before:
        so_far.add(labels, 1.0 - accuracy)
        more = so_far.more_labels(1.0 - target)
        said += more is not None
        if more is not None and reached is not None:
            known, logarithms = known + 1, logarithms + float(np.log((labels + more) / reached))
    return [float(len(before)), float(said), float(known), logarithms]
