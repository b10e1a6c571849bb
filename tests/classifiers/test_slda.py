from __future__ import annotations

import numpy as np
import pytest

from hycal import SLDA
from hycal.algebra.discriminant import dual_precision_times, gram_precision_times
from tests.classifiers.problems import PROBLEMS, assert_agree


def textbook(problem, shrinkage):
    samples, classes = len(problem.X), len(problem.samples)
    covariance = problem.scatter / max(samples - classes, 1)
    precision = np.linalg.inv((1 - shrinkage) * covariance + shrinkage * np.eye(problem.X.shape[1]))
    means = problem.means
    return problem.queries @ precision @ means.T - 0.5 * np.diag(means @ precision @ means.T)


@pytest.mark.parametrize("shrinkage", [1e-4, 0.1])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_is_textbook(problem, shrinkage):
    assert_agree(problem.scores(SLDA(shrinkage=shrinkage)), textbook(problem, shrinkage))


def test_one_shot_is_the_nearest_mean():
    problem = PROBLEMS[3]
    nearest = np.argmin(((problem.queries[:, None] - problem.means) ** 2).sum(axis=2), axis=1)
    np.testing.assert_array_equal(problem.scores(SLDA()).argmax(axis=1), nearest)


@pytest.mark.parametrize("shape", [(5, 30), (30, 5), (12, 12)])
def test_gram_and_dual_form_are_equal(shape):
    rng = np.random.default_rng(0)
    B, vectors = rng.normal(size=shape), rng.normal(size=(4, shape[1]))
    for ridge in (1e-3, 1.0, 1e3):
        assert_agree(dual_precision_times(B, ridge, vectors), gram_precision_times(B, ridge, vectors))
