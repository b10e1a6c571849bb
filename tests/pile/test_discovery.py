"""`hycal.discover`: new classes become groups, learned ones are left alone, and the number is found."""

from __future__ import annotations

import numpy as np
import pytest

from hycal import NCM, HierarchicalHyCal, HyCalError, discover
from hycal.pile import discovery
from hycal.pile.discovery import describe_groups
from tests.pile.test_suggestion import pile


@pytest.fixture(scope="module")
def problem():
    """Five classes of which three are learned by eight images each; a pile of all others."""
    X, y = pile(40, 40, 40, 30, 20, spread=0.3)
    taught = np.concatenate([np.flatnonzero(y == label)[:8] for label in range(3)])
    rest = np.setdiff1d(np.arange(len(y)), taught)
    return HierarchicalHyCal().fit(X[taught], y[taught]), X[rest], y[rest]


def test_new_classes_are_groups_and_known_images_are_left_alone(problem) -> None:
    classifier, X, y = problem
    groups = discover(X, classifier)
    assert np.mean(groups[y < 3] == -1) >= 0.9
    assert groups.max() == 1
    assert np.mean(groups[y == 3] == 0) >= 0.9 and np.mean(groups[y == 4] == 1) >= 0.9  # the larger one comes first


def test_the_order_of_the_rows_makes_no_difference(problem) -> None:
    classifier, X, _ = problem
    order = np.random.default_rng(1).permutation(len(X))
    assert discover(X[order], classifier).tolist() == discover(X, classifier)[order].tolist()


def test_a_large_pile_joins_the_groups_of_a_part_of_it(problem, monkeypatch: pytest.MonkeyPatch) -> None:
    classifier, X, y = problem
    monkeypatch.setattr(discovery, "_LINKED", 20)
    monkeypatch.setattr(discovery, "_AT_ONCE", 16)
    groups = discover(X, classifier)
    assert np.mean(groups[y == 3] >= 0) >= 0.9 and np.mean(groups[y < 3] == -1) >= 0.9
    assert len(set(groups[y == 3])) == 1


def test_nothing_new_has_no_groups(problem) -> None:
    classifier, X, y = problem
    assert np.mean(discover(X[y < 3], classifier) == -1) >= 0.95


def test_without_a_model_all_images_are_grouped_and_the_number_is_found() -> None:
    X, y = pile(30, 25, 20, 15, spread=0.15)
    assert discover(X).tolist() == y.tolist()
    assert discover(X[:4]).tolist() == [0] * 4


def test_groups_are_described_by_typical_images() -> None:
    X, y = pile(30, 20, spread=0.15)
    first, second = describe_groups(X, discover(X))
    assert (len(first.rows), len(second.rows)) == (30, 20) and {int(y[row]) for row in second.rows} == {1}
    own = X[y == 0]
    cosines = own @ own.T
    assert first.similarity == pytest.approx((cosines.sum() - 30) / (30 * 29), abs=1e-4)
    assert first.rows[0] == int((own @ own.sum(axis=0)).argmax())


def test_a_model_of_single_images_says_what_is_missing() -> None:
    X, y = pile(5, 5)
    with pytest.raises(HyCalError, match="No class has two samples that differ"):
        discover(X, NCM().fit(X[[0, 5]], y[[0, 5]]))
    with pytest.raises(HyCalError, match="error is 2"):
        discover(X, error=2)
