"""Softmax and its logarithm agree with SciPy's."""

import numpy as np
from scipy import special

from hycal.algebra.softmax import log_softmax, log_sum_exp, probabilities

SCORES = np.array([[1.0, 2.0, 4.0], [1e4, -1e4, 9.9e3], [0.0, 0.0, -np.inf]])


def test_probabilities_are_those_of_scipy():
    np.testing.assert_allclose(probabilities(SCORES), special.softmax(SCORES, axis=1))


def test_logarithms_are_those_of_scipy():
    np.testing.assert_allclose(log_softmax(SCORES), special.log_softmax(SCORES, axis=1))
    np.testing.assert_allclose(log_sum_exp(SCORES), special.logsumexp(SCORES, axis=1))


def test_scores_stay_as_they_are():
    scores = SCORES.copy()
    probabilities(scores)
    log_softmax(scores)
    np.testing.assert_array_equal(scores, SCORES)
    assert log_softmax(SCORES.astype(np.float32)).dtype == np.float32


def test_probabilities_sum_to_one_at_any_size():
    scores = np.random.default_rng(0).standard_normal((5, 300)) * 1e4
    np.testing.assert_allclose(probabilities(scores).sum(axis=1), 1.0)
