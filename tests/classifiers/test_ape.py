from __future__ import annotations

import itertools

import numpy as np
import pytest

from hycal import APE, HyCalError
from tests.classifiers.problems import PROBLEMS, Problem, assert_agree


def kept_dimensions(samples, texts, share, similarity_weight):
    """The criterion, pair by pair."""
    members = [np.concatenate([text[None], rows]) for text, rows in zip(texts, samples, strict=True)]
    products = [
        one * other
        for i, j in itertools.permutations(range(len(members)), 2)
        for one in members[i]
        for other in members[j]
    ]
    criterion = -similarity_weight * np.mean(products, axis=0) + (1 - similarity_weight) * texts.var(axis=0, ddof=1)
    return np.argsort(-criterion)[: round(share * texts.shape[1])]


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def textbook(problem, alpha=1.0, beta=1.0, gamma=0.1, share=0.78125, similarity_weight=0.7):
    kept = kept_dimensions(problem.samples, problem.texts, share, similarity_weight)
    keys, texts, queries = (unit(rows[:, kept]) for rows in (problem.X, problem.texts, problem.queries))
    logits = np.exp(keys @ texts.T)
    p = logits / logits.sum(axis=1, keepdims=True)
    divergence = np.sum(problem.targets * np.log2((problem.targets + 1e-6) / (p + 1e-6)), axis=1, keepdims=True)
    values = problem.targets * np.exp(gamma * divergence)
    return 100 * problem.queries @ problem.texts.T + alpha * np.exp(-beta * (1 - queries @ keys.T)) @ values


@pytest.mark.parametrize("problem", PROBLEMS)
def test_is_textbook(problem):
    assert_agree(problem.scores(APE()), textbook(problem))
    other = {"alpha": 3.0, "beta": 5.5, "gamma": 1.0, "share": 0.5, "similarity_weight": 0.2}
    assert_agree(problem.scores(APE(**other)), textbook(problem, **other))


def test_dimensions_and_weights_matter():
    problem = PROBLEMS[1]
    plain = problem.scores(APE(alpha=100.0))
    for other in ({"share": 0.4}, {"gamma": 1.0}, {"share": 0.4, "similarity_weight": 0.0}):
        assert np.abs(problem.scores(APE(alpha=100.0, **other)) - plain).max() > 1.0


def test_names_alone_are_zero_shot():
    problem = PROBLEMS[0]
    named = APE().announce(dict(enumerate(problem.texts)))
    assert_agree(named.class_scores(problem.queries), 100 * problem.queries @ problem.texts.T)


def test_an_announced_class_has_a_text_among_the_members():
    problem = Problem.draw(4, 5, 3, 6, seed=3)
    text, known = dict(enumerate(problem.texts)), problem.y < 3
    model = APE(alpha=50.0).fit(problem.X[known], problem.y[known], text=text).announce({3: text[3]})
    half = Problem([*problem.samples[:3], np.empty((0, problem.X.shape[1]))], problem.texts, problem.queries)
    assert_agree(model.class_scores(problem.queries), textbook(half, alpha=50.0))


def test_text_is_needed():
    with pytest.raises(HyCalError, match="APE needs a text embedding for every class, and 'cat' has none"):
        APE().fit([[1.0, 0.0]], ["cat"])
