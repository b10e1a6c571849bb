from __future__ import annotations

import numpy as np
import pytest

from hycal import LoRanPAC
from hycal.algebra.features import ArcCosine, Relu
from tests.classifiers.problems import PROBLEMS, assert_agree


def published(problem, n_components, truncation=0.25, seed=0):
    """One batch of the authors' update: the SVD of the features, the smallest values cut off, no ridge."""
    W = Relu.gaussian(problem.X.shape[1], n_components, seed).projection
    H, Q = np.maximum(problem.X @ W, 0), np.maximum(problem.queries @ W, 0)
    U, S, _ = np.linalg.svd(H.T, full_matrices=False)
    share = 1 - truncation
    kept = min(round(len(H) * share), round(n_components * share))
    U, S = U[:, :kept], S[:kept]
    return Q @ (U @ np.divide((U.T @ H.T @ problem.targets).T, S**2).T)


@pytest.mark.parametrize("n_components", [8, 300])
@pytest.mark.parametrize("problem", PROBLEMS[:3])
def test_is_the_published_truncation(problem, n_components):
    assert_agree(problem.scores(LoRanPAC(n_components=n_components)), published(problem, n_components))
    other = LoRanPAC(n_components=n_components, truncation=0.5, random_state=1)
    assert_agree(problem.scores(other), published(problem, n_components, 0.5, seed=1))


def test_the_kernel_is_the_mean_product_of_features():
    X = PROBLEMS[0].X
    H = Relu.gaussian(X.shape[1], 200_000, 0)(X)
    np.testing.assert_allclose(ArcCosine(X)(X), H @ H.T / H.shape[1], rtol=0.03)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_limit_is_the_truncated_kernel_regression(problem):
    K = ArcCosine(problem.X)(problem.X)
    e, V = np.linalg.eigh(K)
    kept = max(round(0.75 * len(K)), 1)
    e, V = e[-kept:], V[:, -kept:]
    expected = ArcCosine(problem.X)(problem.queries) @ (V / e) @ V.T @ problem.targets
    assert_agree(problem.scores(LoRanPAC(n_components=None)), expected)


def test_equal_samples_have_no_direction_between_them():
    X = np.repeat(np.eye(4)[:2], 5, axis=0)
    model = LoRanPAC(n_components=None, truncation=0.0).fit(X, np.repeat([0, 1], 5))
    np.testing.assert_allclose(model.class_scores(np.eye(4)[:2]), np.eye(2), atol=1e-6)
