"""Normalisation, weights and the blend, against plain float64 formulas."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, log_ndtr, ndtr

from hycal.algebra import scores
from hycal.algebra.scores import blend_log_odds, shot_weights, standardise


def test_standardise_uses_the_sample_deviation():
    scores = np.random.default_rng(0).normal(3.0, 0.1, size=(50, 4)).astype(np.float32)
    expected = (scores - scores.mean(axis=0)) / scores.astype(float).std(axis=0, ddof=1)
    np.testing.assert_allclose(standardise(scores), expected, atol=1e-4)


def test_standardise_keeps_precision_over_many_classes():
    scores = (0.6 + 0.05 * np.random.default_rng(0).normal(size=(200_000, 2))).astype(np.float32)
    exact = scores.astype(np.float64)
    expected = (exact - exact.mean(axis=0)) / exact.std(axis=0, ddof=1)
    np.testing.assert_allclose(standardise(scores), expected, atol=1e-4)


def test_one_candidate_and_equal_candidates_are_zero():
    assert standardise(np.full((1, 3), 7.0, np.float32)).tolist() == [[0.0] * 3]
    assert not standardise(np.full((4, 3), 0.7, np.float32)).any()


@given(st.floats(-8, 8), st.floats(-8, 8), st.floats(0, 1))
def test_blend_is_the_paper_score(a, b, w):
    z = [np.full((1, 1), value, np.float32) for value in (a, b)]
    expected = w * ndtr(float(z[1][0, 0])) + (1 - w) * ndtr(float(z[0][0, 0]))
    np.testing.assert_allclose(expit(blend_log_odds(*z, np.array([w])).astype(float))[0, 0], expected, atol=2e-6)


def test_blend_keeps_both_tails_in_order():
    z = np.linspace(-60, 60, 4001, dtype=np.float32)[:, None]
    for w in (0.0, 0.3, 1.0):
        log_odds = blend_log_odds(z, z, np.full(len(z), w))[:, 0]
        assert (np.diff(log_odds) > 0).all()
        exact = log_ndtr(z.astype(float)) - log_ndtr(-z.astype(float))
        np.testing.assert_allclose(log_odds, exact[:, 0], rtol=1e-5, atol=1e-5)


def test_weights_grow_with_shots_and_step_at_beta_zero():
    assert np.all(np.diff(shot_weights([1, 5, 10, 50], 10, 5)) > 0)
    assert shot_weights([16], 10, 5)[0] == np.float64(expit(1.2))
    assert shot_weights([9, 10, 11], 10, 0).tolist() == [0.0, 0.5, 1.0]


def test_a_blend_of_many_classes_is_made_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    z, weights = rng.normal(scale=4.0, size=(2, 50, 6)).astype(np.float32), rng.uniform(size=50)
    whole = blend_log_odds(*z, weights).copy()
    monkeypatch.setattr(scores, "_AT_ONCE", 40)
    np.testing.assert_array_equal(blend_log_odds(*z, weights), whole)
