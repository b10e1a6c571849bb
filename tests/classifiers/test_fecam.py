from __future__ import annotations

import numpy as np
import pytest

from hycal import FeCAM, HyCalError
from tests.classifiers.problems import PROBLEMS, Problem, assert_agree, exact


def shrink(S, alpha1, alpha2):
    off = S[~np.eye(len(S), dtype=bool)]
    covariance = off[off != 0].mean() if (off != 0).any() else 0.0
    return S + alpha1 * np.mean(np.diag(S)) * np.eye(len(S)) + alpha2 * covariance * (1 - np.eye(len(S)))


def correlation(S):
    scale = np.sqrt(np.diag(S))
    return S / np.outer(scale, scale)


def distances(queries, centres, matrices):
    columns = []
    for centre, R in zip(centres, matrices, strict=True):
        gaps = queries - centre
        columns.append(np.sum(gaps @ np.linalg.pinv(R) * gaps, axis=1))
    return np.stack(columns, axis=1)


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def vit(problem, alpha1, alpha2):
    width = problem.X.shape[1]
    matrices = [
        correlation(shrink(np.cov(x, rowvar=False), alpha1, alpha2)) if len(x) > 1 else np.eye(width)
        for x in problem.samples
    ]
    return -distances(problem.queries, problem.means, matrices)


def few_shot(problem, alpha1):
    identity = np.eye(problem.X.shape[1])
    matrices = []
    for x in problem.samples:
        S = np.cov(x, rowvar=False) if len(x) > 1 else 0 * identity
        ridge = alpha1 * np.mean(np.diag(S)) if len(x) > 1 else 1.0
        matrices.append(np.corrcoef(S + ridge * identity))
    return -distances(problem.queries, unit(problem.means), matrices)


def tukey(problem, beta, alpha1, alpha2):
    matrices = []
    for x in problem.samples:
        S = shrink(shrink(np.cov(x**beta, rowvar=False), alpha1, alpha2), alpha1, alpha2)
        matrices.append(correlation(S))
    return -distances(unit(problem.queries**beta), unit(problem.means**beta), matrices)


@pytest.mark.parametrize(("alpha1", "alpha2"), [(1, 0), (10, 10), (0.5, 0.2)])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_vit_is_textbook(problem, alpha1, alpha2):
    assert_agree(problem.scores(FeCAM(alpha1=alpha1, alpha2=alpha2)), vit(problem, alpha1, alpha2))


@pytest.mark.parametrize("alpha1", [0.5, 100])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_few_shot_is_textbook(problem, alpha1):
    assert_agree(problem.scores(FeCAM(variant="few-shot", alpha1=alpha1)), few_shot(problem, alpha1))


@pytest.mark.parametrize(("beta", "alpha1", "alpha2"), [(0.5, 1, 1), (0.3, 1, 0), (1.0, 2, 0.5)])
def test_tukey_is_textbook(beta, alpha1, alpha2):
    drawn = Problem.draw(5, 30, 3, width=7)
    problem = Problem([exact(np.abs(x)) for x in drawn.samples], drawn.texts, exact(np.abs(drawn.queries)))
    model = FeCAM(variant="tukey", beta=beta, alpha1=alpha1, alpha2=alpha2)
    assert_agree(problem.scores(model), tukey(problem, beta, alpha1, alpha2))


def test_published_shrinkage_is_the_default():
    problem = PROBLEMS[0]
    for variant, alphas in {"vit": (1, 0), "few-shot": (100, 0)}.items():
        explicit = FeCAM(variant=variant, alpha1=alphas[0], alpha2=alphas[1])
        np.testing.assert_array_equal(problem.scores(FeCAM(variant=variant)), problem.scores(explicit))


def test_tukey_refuses_negative_features_and_says_what_to_do():
    signed = [[0.5, -0.5]]
    with pytest.raises(HyCalError, match=r"Class 'cat' has negative.*variant=\"vit\""):
        FeCAM(variant="tukey").fit(signed, ["cat"])
    model = FeCAM(variant="tukey").fit([[0.5, 0.5]], ["cat"])
    with pytest.raises(HyCalError, match="X has negative"):
        model.predict(signed)


def test_features_that_never_vary_are_no_trouble():
    """Their covariances are zero and do not count towards the mean."""
    problem = Problem.draw(4, 6, width=8)
    padded = Problem(
        [np.pad(x, ((0, 0), (0, 3))) for x in problem.samples], problem.texts, np.pad(problem.queries, ((0, 0), (0, 3)))
    )
    model = FeCAM(alpha1=1, alpha2=0.5).fit(padded.X, padded.y)
    assert_agree(model.class_scores(padded.queries), vit(padded, 1, 0.5))


@pytest.mark.parametrize("options", [{"alpha2": 2.0}, {"variant": "few-shot", "alpha2": 1.0}])
def test_shrinkage_that_is_not_positive_definite_is_refused(options):
    with pytest.raises(HyCalError, match="alpha2"):
        FeCAM(**options).fit(np.eye(3), [0, 1, 2])


def test_candidates_are_columns():
    problem = PROBLEMS[0]
    model = problem.learn(FeCAM())
    np.testing.assert_array_equal(
        model.class_scores(problem.queries, classes=[2, 0]), model.class_scores(problem.queries)[:, [2, 0]]
    )
