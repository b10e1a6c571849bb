from __future__ import annotations

import numpy as np
import pytest

from hycal import KLDA
from hycal.algebra.features import Fourier
from tests.classifiers.problems import PROBLEMS, Problem, assert_agree, softmax


def features(problem, size, gamma, seed):
    draw = Fourier.draw(problem.X.shape[1], size, gamma, seed)

    def phi(X):
        return np.sqrt(2 / size) * np.cos(X @ draw.frequencies + draw.phases)

    return Problem([phi(x) for x in problem.samples], problem.texts, phi(problem.queries))


def textbook(problem, size, reg, gamma=0.1, seed=0):
    """The logits, with the term that all classes share."""
    lifted = features(problem, size, gamma, seed)
    precision = np.linalg.inv(lifted.scatter + reg * np.eye(size))
    gaps = lifted.queries[:, None] - lifted.means
    return -np.einsum("ncd,de,nce->nc", gaps, precision, gaps)


def centred(scores):
    return scores - scores.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("size", [5, 60])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_is_textbook(problem, size):
    scores = problem.scores(KLDA(n_components=size, reg=1e-2))
    assert_agree(centred(scores), centred(textbook(problem, size, 1e-2)))


def test_ensemble_averages_probabilities():
    problem = PROBLEMS[0]
    members = [softmax(textbook(problem, 30, 0.1, seed=7 + member)) for member in range(4)]
    model = problem.learn(KLDA(n_components=30, reg=0.1, ensemble=4, random_state=7))
    assert_agree(np.exp(model.class_scores(problem.queries)), np.mean(members, axis=0))
    picked = model.class_scores(problem.queries, classes=[2, 0])
    np.testing.assert_array_equal(picked, model.class_scores(problem.queries)[:, [2, 0]])


def test_fourier_features_tend_to_the_kernel():
    draw = Fourier.draw(12, 40_000, 0.5, 0)
    X = PROBLEMS[0].X
    exact = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    np.testing.assert_allclose(draw(X) @ draw(X).T, exact, atol=0.03)


def test_faithful_is_the_pseudo_inverse_where_the_scatter_has_full_rank():
    problem = Problem.draw(60, 50, 70, width=8)
    lifted = features(problem, 6, 0.5, 0)
    precision = np.linalg.pinv(lifted.scatter)
    gaps = lifted.queries[:, None] - lifted.means
    expected = -np.einsum("ncd,de,nce->nc", gaps, precision, gaps)
    scores = centred(problem.scores(KLDA(n_components=6, gamma=0.5, mode="faithful")))
    np.testing.assert_allclose(scores, centred(expected), rtol=0.02, atol=0.02 * np.abs(expected).max())


def test_faithful_collapses_while_samples_are_few_and_regularised_does_not():
    problem = Problem.draw(*[4] * 40, width=32, seed=4)
    assert len(problem.X) - 40 < 400
    held_out = Problem.draw(*[12] * 40, width=32, seed=4)
    accuracy = {
        mode: float((problem.learn(KLDA(n_components=400, mode=mode)).predict(problem.X) == problem.y).mean())
        for mode in ("faithful", "regularised")
    }
    assert accuracy["faithful"] < 0.2
    assert accuracy["regularised"] > 0.9
    recovered = held_out.learn(KLDA(n_components=100, mode="faithful"))
    assert (recovered.predict(held_out.X) == held_out.y).mean() > 0.8
