from __future__ import annotations

import numpy as np
import pytest

from hycal import GDA, HyCalError
from tests.classifiers.problems import PROBLEMS, assert_agree, domain_covariances, in_domains


def textbook(problem, alpha, zero_shot):
    width, samples, classes = problem.X.shape[1], len(problem.X), len(problem.samples)
    covariance = problem.scatter / (samples - 1)
    precision = width * np.linalg.inv((samples - 1) * covariance + np.trace(covariance) * np.eye(width))
    means = problem.means
    bias = np.log(1 / classes) - 0.5 * np.diag(means @ precision @ means.T)
    scores = alpha * (problem.queries @ precision @ means.T + bias)
    return scores + 100 * problem.queries @ problem.texts.T if zero_shot == "fuse" else scores


@pytest.mark.parametrize("zero_shot", ["fuse", "none"])
@pytest.mark.parametrize("problem", PROBLEMS[:3])
def test_is_textbook(problem, zero_shot):
    assert_agree(problem.scores(GDA(alpha=0.7, zero_shot=zero_shot)), textbook(problem, 0.7, zero_shot))


def test_one_shot_is_the_nearest_mean():
    problem = PROBLEMS[3]
    nearest = np.argmin(((problem.queries[:, None] - problem.means) ** 2).sum(axis=2), axis=1)
    np.testing.assert_array_equal(problem.scores(GDA(zero_shot="none")).argmax(axis=1), nearest)


def test_an_announced_class_has_its_name_and_the_mean_of_all_images():
    problem = PROBLEMS[2]
    known, classes = problem.y != 1, len(problem.samples)
    X, means = problem.X[known], problem.means.copy()
    means[1] = X.mean(axis=0)
    within = X - means[problem.y[known]]
    spread = np.sum(within**2) / (len(X) - 1)
    precision = X.shape[1] * np.linalg.inv(within.T @ within + spread * np.eye(X.shape[1]))
    gaussians = problem.queries @ precision @ means.T - 0.5 * np.diag(means @ precision @ means.T) - np.log(classes)
    model = GDA(alpha=0.7).fit(X, problem.y[known], text=dict(enumerate(problem.texts)))
    model.announce({1: problem.texts[1]})
    assert_agree(model.class_scores(problem.queries), 100 * problem.queries @ problem.texts.T + 0.7 * gaussians)


def test_names_alone_are_zero_shot():
    problem = PROBLEMS[0]
    named = GDA().announce(dict(enumerate(problem.texts)))
    assert_agree(named.class_scores(problem.queries), 100 * problem.queries @ problem.texts.T)


def test_refuses_what_it_cannot_place():
    alone = GDA(zero_shot="none").fit([[1.0, 0.0]], ["cat"])
    with pytest.raises(HyCalError, match="'cow' has none yet"):
        alone.announce({"cow": [0.0, 1.0]})
    learned = GDA().fit([[1.0, 0.0]], ["cat"], text={"cat": [1.0, 0.0]})
    with pytest.raises(HyCalError, match=r'needs a text embedding.*zero_shot="none"'):
        learned.partial_fit([[0.0, 1.0]], ["dog"])


@pytest.mark.parametrize("problem", PROBLEMS[:3])
def test_domains_have_gaussians_of_their_own(problem):
    domains, width = ["a", "b", "a", "b"][: len(problem.samples)], problem.X.shape[1]
    model = in_domains(problem, GDA(alpha=0.7, covariance="domain", strength=7.0), domains)
    samples, classes = len(problem.X), len(problem.samples)
    scores = np.empty((len(problem.queries), classes))
    for label, covariance in enumerate(domain_covariances(problem, domains, 7.0)):
        scatter = (samples - classes) * covariance
        precision = width * np.linalg.inv(scatter + np.trace(scatter) / (samples - 1) * np.eye(width))
        away = problem.queries - problem.means[label]
        weight = width / (samples - classes)
        logs = weight * np.linalg.slogdet(precision / weight)[1]
        scores[:, label] = 0.5 * (logs - np.sum(away @ precision * away, axis=1)) - np.log(classes)
    expected = 0.7 * scores + 100 * problem.queries @ problem.texts.T
    assert_agree(model.class_scores(problem.queries), expected)


def test_an_announced_domain_has_the_covariance_of_all():
    problem = PROBLEMS[2]
    known, text = problem.y != 1, dict(enumerate(problem.texts))
    model = GDA(covariance="domain").fit(problem.X[known], problem.y[known], domain="a", text=text)
    model.announce({1: text[1]}, domain="b")
    factors = model.snapshot().value.factors
    np.testing.assert_allclose(factors[1], factors[0], rtol=1e-9)
