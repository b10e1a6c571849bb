from __future__ import annotations

import numpy as np
import pytest

from hycal import DualRAIL, HyCalError, PrimalRAIL, load
from hycal.algebra.features import Relu
from tests.classifiers.problems import PROBLEMS, Problem, assert_agree, softmax


def primal(problem, n_components, ridge, seed=0):
    V = Relu.uniform(problem.X.shape[1], n_components, seed).projection
    H, Q = np.maximum(problem.X @ V, 0), np.maximum(problem.queries @ V, 0)
    return Q @ np.linalg.solve(H.T @ H + ridge * np.eye(n_components), H.T @ problem.targets)


def dual(problem, gamma, ridge):
    def kernel(A, B):
        return np.exp(-gamma * ((A[:, None] - B) ** 2).sum(axis=2))

    K = kernel(problem.X, problem.X)
    return kernel(problem.queries, problem.X) @ np.linalg.solve(K + ridge * np.eye(len(K)), problem.targets)


def fuse(problem, adapter, learned, weight=0.8):
    """X-TAIL: queries that zero-shot gives to a learned class are blended, the others are left to it."""
    out = softmax(100 * problem.queries @ problem.texts.T)
    for row in range(len(out)):
        if learned[out[row].argmax()]:
            out[row] = (1 - weight) * out[row] + weight * adapter[row]
    return out


@pytest.mark.parametrize("n_components", [8, 200])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_primal_is_textbook(problem, n_components):
    adapter = primal(problem, n_components, 0.1)
    assert_agree(problem.scores(PrimalRAIL(n_components=n_components, zero_shot="none")), adapter)
    fused = problem.scores(PrimalRAIL(n_components=n_components))
    assert_agree(fused, fuse(problem, adapter, [True] * len(problem.samples)))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_dual_is_textbook(problem):
    adapter = dual(problem, 0.1, 1e-3)
    assert_agree(problem.scores(DualRAIL(zero_shot="none")), adapter)
    assert_agree(problem.scores(DualRAIL()), fuse(problem, adapter, [True] * len(problem.samples)))


@pytest.mark.parametrize("method", [DualRAIL(), PrimalRAIL(n_components=50)])
def test_classes_to_come_are_left_to_zero_shot(method, tmp_path):
    problem = Problem.draw(4, 5, 3, 6, 4, 4, seed=3)
    known = problem.y < 3
    half = Problem(problem.samples[:3], problem.texts, problem.queries)
    text = dict(enumerate(problem.texts))
    method.fit(problem.X[known], problem.y[known], text=text)
    method.announce({label: text[label] for label in (3, 4, 5)}, domain="to come")
    adapter = dual(half, 0.1, 1e-3) if isinstance(method, DualRAIL) else primal(half, 50, 0.1)
    expected = fuse(problem, np.pad(adapter, ((0, 0), (0, 3))), [True] * 3 + [False] * 3)
    to_come = expected.argmax(axis=1) > 2
    assert to_come.any(), "some queries should go to classes to come"
    assert not to_come.all(), "some queries should go to learned classes"
    assert_agree(method.class_scores(problem.queries), expected)
    method.save(tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    assert loaded.counts_.tolist() == [4, 5, 3, 0, 0, 0]
    assert_agree(loaded.class_scores(problem.queries), expected)
    loaded.partial_fit(problem.X[~known], problem.y[~known])
    assert_agree(loaded.class_scores(problem.queries), problem.scores(method))


def test_only_names_is_zero_shot():
    problem = PROBLEMS[0]
    for method in (DualRAIL(), PrimalRAIL(n_components=20)):
        method.announce(dict(enumerate(problem.texts)))
        assert_agree(method.class_scores(problem.queries), softmax(100 * problem.queries @ problem.texts.T))


def test_images_alone_cannot_tell_an_announced_class():
    with pytest.raises(HyCalError, match="'cow' has none yet"):
        DualRAIL(zero_shot="none").fit([[1.0, 0.0]], ["cat"]).announce({"cow": [0.0, 1.0]})
