from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erf

from hycal import AnaCP
from hycal.algebra.features import Gelu
from hycal.classifiers.anacp import spread_means
from tests.classifiers.problems import PROBLEMS, assert_agree

PARAMETERS = {"n_components": 30, "heads": 2, "ridge": 0.5, "replay": 6, "random_state": 3}


def gelu(x):
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def published(problem, n_components, heads, ridge, replay, random_state):
    """One call of the authors' update, with the random numbers of the library."""
    X, width = problem.X, problem.X.shape[1]
    *seeds, last, noise = map(int, np.random.SeedSequence(random_state).generate_state(heads + 2))
    draws = [Gelu.gaussian(width, n_components, seed).projection for seed in (*seeds, last)]
    covariance = problem.scatter / len(X) + 1e-4 * np.eye(width)
    e, V = np.linalg.eigh(covariance)
    whitening = V @ np.diag(1 / np.sqrt(e + 1e-8)) @ V.T
    centre = problem.means.mean(axis=0)
    U, s, Vt = np.linalg.svd((problem.means - centre) @ whitening, full_matrices=False)
    rank = min(len(problem.means) - 1, width)
    targets = unit(U[:, :rank] @ np.diag(s[:rank] + 1) @ Vt[:rank] @ whitening + centre)

    def project(rows):
        found = []
        for W in draws[:-1]:
            Z = gelu(X @ W)
            theta = np.linalg.solve(Z.T @ Z + ridge * np.eye(n_components), Z.T @ targets[problem.y])
            found.append(unit(gelu(rows @ W) @ theta))
        return np.mean(found, axis=0)

    normal = np.random.default_rng(noise).standard_normal((replay, width)) @ (V @ np.diag(np.sqrt(e)) @ V.T)
    H = gelu(project(np.concatenate([mean + normal for mean in problem.means])) @ draws[-1])
    labels = np.repeat(np.eye(len(problem.means)), replay, axis=0)
    theta = np.linalg.solve(H.T @ H + ridge * np.eye(n_components), H.T @ labels)
    return gelu(project(problem.queries) @ draws[-1]) @ theta


@pytest.mark.parametrize("problem", PROBLEMS)
def test_is_the_published_update(problem):
    assert_agree(problem.scores(AnaCP(**PARAMETERS)), published(problem, **PARAMETERS))


def test_targets_stand_farther_apart():
    means = PROBLEMS[1].means
    targets = spread_means(means, np.eye(means.shape[1]))
    assert np.linalg.norm(targets - targets.mean(axis=0)) > 1.5 * np.linalg.norm(means - means.mean(axis=0))
    np.testing.assert_allclose(spread_means(means[:1], np.eye(6)), unit(means[:1]), atol=1e-12)
