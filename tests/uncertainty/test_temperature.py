"""Weights of evidence against a SciPy optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from hycal.uncertainty.temperature import Penalty, best_temperature, fit_weights


def most_likely(evidence, own, penalty):
    """The weights that SciPy finds for the same objective, and their loss."""

    def loss(w):
        right = log_softmax(np.tensordot(w, evidence, axes=1), axis=1)[np.arange(len(own)), own]
        return -right.sum() + penalty.value(w)

    start = penalty.centre
    found = minimize(lambda u: loss(u * start), np.ones(len(start)), bounds=[(1e-3, None)] * len(start), tol=1e-14)
    return found.x * start, loss


@pytest.mark.parametrize("kinds", [1, 2, 3])
@pytest.mark.parametrize("strength", [1e-3, 10.0])
def test_weights_are_those_of_a_general_optimiser(kinds, strength):
    rng = np.random.default_rng(kinds)
    own = rng.integers(0, 6, 150)
    evidence = rng.normal(size=(kinds, 150, 6))
    evidence[:, np.arange(150), own] += 0.8
    evidence *= np.array([1.0, 20.0, 0.1])[:kinds, None, None]
    penalty = Penalty(np.array([0.5, 0.05, 1.0])[:kinds], strength)
    expected, loss = most_likely(evidence, own, penalty)
    weights = fit_weights(evidence, own, penalty)
    np.testing.assert_allclose(weights, expected, rtol=1e-4)
    assert loss(weights) <= loss(expected) + 1e-9


def test_weights_stay_positive_where_evidence_misleads():
    evidence = np.zeros((1, 40, 2))
    evidence[0, :, 1] = 1.0
    assert fit_weights(evidence, np.zeros(40, int), Penalty(np.array([2.0]), 1e-3))[0] == pytest.approx(2e-3)


def test_scores_that_are_all_alike_have_a_finite_temperature():
    assert np.isfinite(best_temperature(np.zeros((5, 3)), np.array([0, 1, 2, 0, 1])))
