"""How far a pile is: the accuracy to expect of the rest, and the labels to a target."""

from __future__ import annotations

import numpy as np
import pytest

from hycal import HierarchicalHyCal
from hycal.pile.progress import LabelCurve, estimate_rest
from hycal.pile.sorting import decide
from tests.pile.test_suggestion import pile


def test_the_accuracy_is_that_of_sorting_with_the_interval_of_as_many_labels():
    X, y = pile(30, 30, 30, 30, spread=0.5)
    learned = HierarchicalHyCal().fit(X[::10], y[::10])
    found = estimate_rest(learned, X[1::2])
    expected = np.mean([decision.probability for decision in decide(learned, X[1::2], unknown=None)])
    assert found.accuracy == pytest.approx(expected)
    assert (found.total, found.low < found.accuracy < found.high) == (12, True)


def test_nothing_is_expected_of_one_class():
    X, y = pile(10, 10)
    assert estimate_rest(HierarchicalHyCal().fit(X[y == y[0]], y[y == y[0]]), X) is None


def test_what_was_taken_back_leaves_the_curve():
    curve = LabelCurve()
    for labels in range(1, 41):
        curve.add(labels, 0.9 / labels)
    said = curve.more_labels(0.9 / 60)
    for labels in range(41, 50):
        curve.add(labels, 0.9)
    curve.add(40, 0.9 / 40)
    assert curve.more_labels(0.9 / 60) == said == 20


@pytest.mark.parametrize(
    "errors",
    [
        [0.3] * 30,  # they do not fall
        [0.5, 0.4, 0.3],  # too few points
        [0.9 * n**-0.2 for n in range(1, 31)],  # too far away
        [],
    ],
)
def test_nothing_is_said_where_nothing_can_be(errors):
    curve = LabelCurve()
    for labels, error in enumerate(errors, start=1):
        curve.add(labels, error)
    assert curve.more_labels(0.05) is None
