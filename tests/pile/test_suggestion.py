"""`hycal.suggest`: coverage first, then coverage and doubt; deterministic, and never a near-duplicate twice."""

from __future__ import annotations

import numpy as np
import pytest

import hycal
from hycal import NCM, HyCalError, suggest
from hycal.pile import suggestion
from hycal.validation import unit_rows

WIDTH = 16


def pile(*sizes: int, seed: int = 0, spread: float = 0.25) -> tuple[np.ndarray, np.ndarray]:
    """Classes of these sizes around axes, and the class of each row."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return unit_rows(np.eye(WIDTH)[y] + spread * rng.normal(size=(len(y), WIDTH)) / 2), y


def shortfalls(x: np.ndarray, learned: np.ndarray, weights: np.ndarray, picked: np.ndarray) -> list[float]:
    """How much less each pick adds than the best candidate does: the equation of the module, at every step."""
    spread = 1.0 - np.sum(x.mean(axis=0, dtype=np.float64) ** 2)

    def reach(a: np.ndarray) -> np.ndarray:
        return np.exp((x.astype(np.float64) @ a.T.astype(np.float64) - 1.0) / (0.3 * spread))

    covered, kernel = reach(learned).max(axis=1), reach(x)
    near = 1.0 - 0.05 * spread
    free = (x @ learned.T).max(axis=1) < near
    found = []
    for row in picked:
        gains = np.where(free, weights @ np.maximum(kernel - covered[:, None], 0.0), -1.0)
        found.append(float(gains.max() - gains[row]))
        covered = np.maximum(covered, kernel[:, row])
        free &= x @ x[row] < near
    return found


def test_from_nothing_every_class_is_found_with_one_label_each() -> None:
    X, y = pile(40, 30, 20, 10)
    assert sorted(y[suggest(X, 4)]) == [0, 1, 2, 3]


def test_what_is_labelled_is_covered_already() -> None:
    X, y = pile(30, 30, 30, 30)
    classifier = NCM().fit(X[y < 2], y[y < 2])
    chosen = suggest(X, 6, classifier)
    assert len(set(chosen)) == 6 and np.mean(y[chosen] >= 2) >= 0.8


def test_the_lazy_search_finds_what_the_plain_one_finds() -> None:
    X, y = pile(25, 20, 15, seed=3)
    classifier = NCM().fit(X[:8], y[:8] + 1).partial_fit(X[30:34], y[30:34])
    picked = suggest(X, 10, classifier)
    short = shortfalls(X, classifier.records_.stacked(), suggestion._doubt(classifier, X), picked)
    assert len(picked) == 10 and max(short) < 1e-5
    assert max(shortfalls(X, classifier.records_.stacked(), suggestion._doubt(classifier, X), picked[::-1])) > 1e-2


def test_the_margin_counts_as_labels_come_of_classes_that_have_one() -> None:
    X, y = pile(20, 20, 20)
    firsts, seconds = [0, 20, 40], [1, 21]
    alone = NCM().fit(X[firsts], y[firsts])
    np.testing.assert_array_equal(suggestion._doubt(alone, X), 1.0)
    chances = np.sort((more := NCM().fit(X[firsts + seconds], y[firsts + seconds])).predict_proba(X), axis=1)
    expected = np.maximum(1.0 - (1.0 - 0.2**3) * (chances[:, -1] - chances[:, -2]), 0.3)
    doubt = suggestion._doubt(more, X)
    known = doubt < 1.0  # the others fit no class
    assert known.any()
    np.testing.assert_allclose(doubt[known], expected[known])


def test_the_first_suggestions_cover_most_as_well() -> None:
    X, _ = pile(25, 20, 15, seed=4)
    short = shortfalls(X, np.zeros((1, WIDTH), np.float32), np.ones(len(X)), suggest(X, 10))
    assert len(short) == 10 and max(short) < 1e-3


def test_the_order_of_the_rows_makes_no_difference() -> None:
    X, _ = pile(20, 20, 20)
    order = np.random.default_rng(1).permutation(len(X))
    assert set(order[suggest(X[order], 7)]) == set(suggest(X, 7).tolist())
    assert suggest(X, 7).tolist() == suggest(X, 7).tolist()


def test_a_near_duplicate_is_suggested_once() -> None:
    X, _ = pile(12, 12)
    copies = unit_rows(np.concatenate([X, X + 1e-3 * np.random.default_rng(0).normal(size=X.shape), X]))
    for classifier in (None, NCM().fit(X[:2], ["a", "b"])):
        chosen = suggest(copies, 100, classifier)
        cosines = copies[chosen] @ copies[chosen].T - 2.0 * np.eye(len(chosen))
        assert len(chosen) <= 24 and cosines.max() < 1.0 - 1e-4
    assert not {0, 1} & {int(row) % 24 for row in suggest(copies, 100, NCM().fit(X[:2], ["a", "b"]))}


def test_a_large_pile_is_looked_at_by_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = pile(300, 300, 300)
    monkeypatch.setattr(suggestion, "_CROWD", 60)
    assert sorted(y[suggest(X, 3)]) == [0, 1, 2]
    classifier = NCM().fit(X[y < 2][::50], y[y < 2][::50])
    assert np.mean(y[suggest(X, 5, classifier)] == 2) >= 0.6


def test_more_than_there_is_gives_what_there_is() -> None:
    X, _ = pile(3, 3)
    assert sorted(suggest(X, 50).tolist()) == list(range(6))
    assert suggest(X[:1], 5).tolist() == [0]


def test_an_impossible_number_is_refused() -> None:
    with pytest.raises(HyCalError, match="most is 0; expected"):
        suggest(np.eye(3), 0)
    with pytest.raises(HyCalError, match="16 features"):
        suggest(pile(3)[0], 1, NCM().fit(np.eye(3), [0, 1, 2]))


def test_the_names_are_public() -> None:
    assert hycal.suggest is suggestion.suggest and {"suggest", "discover"} <= set(hycal.__all__)
