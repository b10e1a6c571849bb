from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from hycal import GDA, SLDA, HyCalError
from hycal.algebra.discriminant import dual_precision_times, gram_precision_times
from tests.classifiers.problems import PROBLEMS, assert_agree, domain_covariances, in_domains


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


DOMAINS = ["a", "b", "a", "b"]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_domains_have_gaussians_of_their_own(problem):
    domains, width = DOMAINS[: len(problem.samples)], problem.X.shape[1]
    model = in_domains(problem, SLDA(shrinkage=0.1, covariance="domain", strength=7.0), domains)
    expected = np.empty((len(problem.queries), len(domains)))
    for label, covariance in enumerate(domain_covariances(problem, domains, 7.0)):
        away = problem.queries - problem.means[label]
        precision = np.linalg.inv(0.9 * covariance + 0.1 * np.eye(width))
        expected[:, label] = 0.5 * (np.linalg.slogdet(precision)[1] - np.sum(away @ precision * away, axis=1))
    assert_agree(model.class_scores(problem.queries), expected)
    assert_agree(model.class_scores(problem.queries, classes=[2, 0]), expected[:, [2, 0]])


@pytest.mark.parametrize("method", [SLDA(shrinkage=0.1), GDA(alpha=0.7)])
def test_one_domain_ranks_as_the_pooled_covariance(method):
    problem = PROBLEMS[1]
    pooled = problem.scores(clone(method))
    scores = problem.scores(clone(method).set_params(covariance="domain"))
    apart = scores - pooled
    assert_agree(apart, np.repeat(apart[:, :1], apart.shape[1], axis=1))


def test_domains_cannot_be_exported():
    model = in_domains(PROBLEMS[0], SLDA(covariance="domain"), DOMAINS)
    with pytest.raises(HyCalError, match=r"SLDA\(covariance='domain'\) is not linear"):
        model.onnx_scores(None, "rows", model.snapshot())
