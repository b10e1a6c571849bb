"""The covariance factor against the dense inverse."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hycal.algebra.covariance import covariance_factors


@given(st.integers(0, 1000), st.integers(1, 9), st.sampled_from([1e-6, 1e-4, 0.3]))
def test_factor_gives_the_dense_inverse(seed, count, ridge):
    deviations = np.random.default_rng(seed).normal(size=(2, count, 5))
    deviations -= deviations.mean(axis=1, keepdims=True)
    factors = covariance_factors(deviations, 0.9, ridge)
    for D, W in zip(deviations, factors, strict=True):
        covariance = D.T @ D / (count - 1) if count > 1 else np.zeros((5, 5))
        inverse = (np.eye(5) - W.T @ W) / ridge
        np.testing.assert_allclose(inverse @ (0.9 * covariance + ridge * np.eye(5)), np.eye(5), atol=1e-6)


def test_rank_is_one_less_than_the_samples_and_at_most_the_width():
    assert covariance_factors(np.ones((2, 3, 4)), 1.0, 0.1).shape == (2, 2, 4)
    assert covariance_factors(np.random.default_rng(0).normal(size=(1, 50, 4)), 1.0, 0.1).shape == (1, 4, 4)


def test_collinear_samples_need_no_rank_decision():
    D = np.outer(np.arange(4.0) - 1.5, np.ones(6))[None]
    assert np.isfinite(covariance_factors(D, 1.0, 1e-9)).all()
