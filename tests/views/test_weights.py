"""Weights of views: neutral evidence, missing views, and what held-out samples prove."""

from __future__ import annotations

import numpy as np

from hycal.algebra.softmax import log_softmax
from hycal.views.weights import DomainColumns, ViewWeights, log_shares

GROUPS = DomainColumns.of(np.array(["a", "b", "a", "b", "b"]))


def test_the_parts_of_a_log_posterior_are_the_whole() -> None:
    L = log_softmax(np.random.default_rng(0).normal(size=(7, 5)))
    D, W = GROUPS.split(L)
    np.testing.assert_allclose(W + D[:, GROUPS.numbers], L, atol=1e-12)
    weights = ViewWeights(GROUPS.names, np.ones((2, 1)), np.ones(1), np.ones(1))
    np.testing.assert_allclose(weights.combined(GROUPS, D[None], W[None]), L, atol=1e-12)


def test_what_is_unknown_has_the_mean_share() -> None:
    L = np.log([[0.1, 0.3, np.nan], [np.nan, np.nan, np.nan]])
    totals, shares = log_shares(L)
    np.testing.assert_allclose(np.exp(shares), [[0.25, 0.75, 0.5], [1.0, 1.0, 1.0]])
    assert np.isclose(np.exp(totals[0]), 0.4) and np.isnan(totals[1])


def test_missing_views_keep_the_sum_of_weights() -> None:
    weights = ViewWeights(("a",), np.array([[0.5, 0.3, 0.2]]), np.full(3, 1 / 3), np.array([0.2, 0.6, 0.2]))
    two = weights.of_present(np.array([True, False, True]))
    np.testing.assert_allclose(two.classes, [[5 / 7, 0.0, 2 / 7]])
    np.testing.assert_allclose(two.domains, [0.5, 0.0, 0.5])
    np.testing.assert_allclose(weights.of_present(np.array([False, True, False])).classes, [[0.0, 1.0, 0.0]])


def test_weights_go_to_the_view_that_proves_something_in_its_domain() -> None:
    rng, n = np.random.default_rng(1), 400
    inside = []
    for good in (0, 1):  # in the first domain the first view is right, in the second the second
        place = rng.integers(3, size=n)
        W = rng.normal(size=(2, n, 3))
        W[good, np.arange(n), place] += 2.0
        inside.append((log_softmax(W.reshape(-1, 3)).reshape(2, n, 3), place))
    groups = DomainColumns.of(np.array(["a"] * 3 + ["b"] * 3))
    found = ViewWeights.fit(groups, np.zeros((2, 0, 2)), np.empty(0, np.intp), inside)
    assert found.classes[0, 0] > 5.0 * found.classes[0, 1] and found.classes[1, 1] > 5.0 * found.classes[1, 0]


def test_views_that_say_the_same_keep_their_weight_and_noise_loses_it() -> None:
    rng, n = np.random.default_rng(2), 60
    place = rng.integers(3, size=n)
    told, noise = rng.normal(size=(2, n, 3))
    told[np.arange(n), place] += 6.0
    alone = DomainColumns.of(np.array(["a"] * 3))
    for views, least in ((np.stack([told, told]), 0.2), (np.stack([told, noise]), 0.0)):
        W = log_softmax(views.reshape(-1, 3)).reshape(2, n, 3)
        found = ViewWeights.fit(alone, np.zeros((2, 0, 1)), np.empty(0, np.intp), [(W, place)]).classes[0]
        assert found[0] > 0.2 and (found[1] > least if least else found[1] < 0.1)
