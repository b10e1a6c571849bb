"""Cross-validation against models that are fitted without the held-out samples, and what its intervals promise."""

from __future__ import annotations

import numpy as np
import pytest

from hycal import NCM, HierarchicalHyCal
from hycal.data.bundled import load_xd8
from hycal.uncertainty.cross_validation import Estimate, cross_validate
from hycal.uncertainty.near_duplicates import duplicate_groups
from hycal.validation import unit_rows


def problem(classes, shots, seed=0):
    domain = load_xd8()["texture"]
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(np.flatnonzero(domain.train_y == c))[:shots] for c in range(classes)])
    return domain.train_x[rows], domain.train_y[rows]


@pytest.mark.parametrize("method", [NCM, HierarchicalHyCal])
def test_an_answer_is_that_of_the_model_without_the_round(method):
    X, y = problem(3, 4)
    fitted = method().fit(X, y)
    found = cross_validate(fitted, fitted.records_)
    stacked, own = fitted.records_.stacked(), np.repeat(np.arange(3), 4)
    assert np.array_equal(found.rows, np.arange(12)) and np.array_equal(found.own, own)
    for number in range(4):  # each class has four samples: one of each is held out together
        held = np.arange(number, 12, 4)
        other = method().fit(np.delete(stacked, held, axis=0), np.delete(own, held))
        assert other.predict(stacked[held]).tolist() == found.answers[held].tolist()
    estimate = found.estimate()
    assert estimate.total == 12
    assert estimate.accuracy == pytest.approx(1 - np.sum(~found.hits) * np.sqrt(3 / 4) / 12)


def test_near_duplicates_are_held_out_together_and_count_once():
    X, y = problem(2, 3)
    noise = unit_rows(np.random.default_rng(1).standard_normal(X.shape))
    fitted = NCM().fit(np.concatenate([X, unit_rows(X + 0.01 * noise)]), np.concatenate([y, y]))
    groups = duplicate_groups(fitted.records_)
    found = cross_validate(fitted, fitted.records_)
    assert len(found.rows) == 12 and found.estimate().total == len(np.unique(groups)) == 6
    for group in range(6):
        held = np.flatnonzero(groups == group)
        assert len(held) == 2 and len(np.unique(found.rounds[held])) == 1


def test_a_class_of_one_group_is_not_judged():
    X, y = problem(3, 2)
    X[y == 2] = X[y == 2][0]
    found = cross_validate(NCM().fit(X, y), NCM().fit(X, y).records_)
    assert found.own.tolist() == [0, 0, 1, 1] and found.estimate(2).total == 0
    assert (found.estimate(2).low, found.estimate(2).high) == (0.0, 1.0)


def test_the_interval_narrows_with_samples_and_never_leaves_0_and_1():
    few, many = Estimate(8.0, 10), Estimate(800.0, 1000)
    assert 0 < few.low < many.low < 0.8 < many.high < few.high < 1
    most = Estimate(8e5, 10**6)  # new images differ from the learned ones, however many these are
    assert 0.1 < most.high - most.low < many.high - many.low
    assert Estimate(10.0, 10).high == 1.0 and Estimate(10.0, 10).low < 0.9 and Estimate(0.0, 10).low == 0.0


@pytest.mark.parametrize("planted", [False, True])
def test_the_measured_accuracy_is_in_the_interval(planted):
    inside = []
    for name in ("texture", "digit", "art", "satellite"):
        domain = load_xd8()[name]
        for seed in range(5):
            rng = np.random.default_rng(seed)
            chosen = rng.permutation(len(domain.class_names))[:5]
            rows = np.concatenate([rng.permutation(np.flatnonzero(domain.train_y == c))[:4] for c in chosen])
            X, y = domain.train_x[rows], domain.train_y[rows]
            if planted:
                X = unit_rows(np.concatenate([X, X + 0.002 * rng.standard_normal(X.shape)]))
                y = np.concatenate([y, y])
            fitted = NCM().fit(X, y)
            estimate = cross_validate(fitted, fitted.records_).estimate()
            asked = np.isin(domain.test_y, chosen)
            accuracy = np.mean(fitted.predict(domain.test_x[asked]) == domain.test_y[asked])
            inside.append(estimate.low <= accuracy <= estimate.high)
    assert np.mean(inside) >= 0.85
