from __future__ import annotations

import numpy as np
import pytest

from hycal import ProKeR
from tests.classifiers.problems import PROBLEMS, Problem, assert_agree


def textbook(problem, beta, ridge, *, names, weight=None):
    """The authors' solution: (K/ridge + I) A = Y - F, and k(x)'A added to f(x)."""

    def kernel(A, B):
        return np.exp(-beta * (1.0 - A @ B.T))

    texts = problem.texts if names else np.zeros_like(problem.texts)
    K = kernel(problem.X, problem.X)
    A = np.linalg.solve(K / ridge + np.eye(len(K)), problem.targets - problem.X @ texts.T)
    if weight is not None:
        A *= weight / ridge
    return problem.queries @ texts.T + kernel(problem.queries, problem.X) @ A


@pytest.mark.parametrize("problem", PROBLEMS)
def test_is_the_published_solution(problem):
    assert_agree(problem.scores(ProKeR()), textbook(problem, 1.7, 0.1, names=True))
    assert_agree(problem.scores(ProKeR(beta=3.0, ridge=0.05)), textbook(problem, 3.0, 0.05, names=True))
    assert_agree(problem.scores(ProKeR(zero_shot="none")), textbook(problem, 1.7, 0.1, names=False))


def test_a_weight_of_one_minimises_the_proximal_loss():
    problem = PROBLEMS[2]
    model = problem.learn(ProKeR(weight=1.0, ridge=0.3))
    expected = textbook(problem, 1.7, 0.3, names=True, weight=1.0)
    assert_agree(model.class_scores(problem.queries), expected)
    # The gradient of sum |F + K A - Y|^2 + ridge tr(A'K A) over the coefficients A is zero.
    K = np.exp(-1.7 * (1.0 - problem.X @ problem.X.T))
    fit = model.class_scores(problem.X)
    A = np.linalg.solve(K, fit - problem.X @ problem.texts.T)
    np.testing.assert_allclose(K @ (fit - problem.targets + 0.3 * A), 0.0, atol=1e-6)


def test_names_alone_are_zero_shot_and_an_announced_class_has_no_images():
    problem = Problem.draw(4, 5, 3, 6, seed=3)
    text, known = dict(enumerate(problem.texts)), problem.y < 3
    named = ProKeR().announce(text)
    assert_agree(named.class_scores(problem.queries), problem.queries @ problem.texts.T)
    model = ProKeR().fit(problem.X[known], problem.y[known], text=text).announce({3: text[3]})
    half = Problem([*problem.samples[:3], np.empty((0, problem.X.shape[1]))], problem.texts, problem.queries)
    assert_agree(model.class_scores(problem.queries), textbook(half, 1.7, 0.1, names=True))
