from __future__ import annotations

import numpy as np
import pytest

from hycal import HyCalError, ModelFileError, RanPAC, load
from hycal.algebra.features import Relu, one_hot
from hycal.algebra.ridge import dual_weights, gram_weights, validation_errors
from hycal.testing.laws import LAWS
from hycal.testing.streams import Stream, learn
from tests.classifiers.problems import PROBLEMS, Problem, assert_agree
from tests.support.files import rewrite


def textbook(problem, n_components, ridge, seed=0):
    W = Relu.gaussian(problem.X.shape[1], n_components, seed).projection
    H, Q = np.maximum(problem.X @ W, 0), np.maximum(problem.queries @ W, 0)
    return Q @ np.linalg.solve(H.T @ H + ridge * np.eye(n_components), H.T @ problem.targets)


@pytest.mark.parametrize("ridge", [0.1, 100.0])
@pytest.mark.parametrize("n_components", [8, 200])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_is_textbook(problem, n_components, ridge):
    assert_agree(problem.scores(RanPAC(n_components=n_components, ridge=ridge)), textbook(problem, n_components, ridge))


@pytest.mark.parametrize("strategy", ["per-task", "first-task", "joint"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_is_textbook_with_the_ridge_it_chose(problem, strategy):
    model = problem.learn(RanPAC(n_components=300, ridge=strategy))
    assert_agree(model.decision_function(problem.queries), textbook(problem, 300, model.ridge_))


@pytest.mark.parametrize("shape", [(5, 30), (30, 5), (2500, 3), (12, 1300)])
def test_gram_and_dual_form_are_equal(shape):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(shape[0], 6)).astype(np.float32), rng.normal(size=(shape[0], 4))
    features = Relu.gaussian(6, shape[1], 0)
    assert_agree(gram_weights(features, X, Y, 0.5), dual_weights(features, X, Y, 0.5))


@pytest.mark.parametrize("shape", [(6, 30), (30, 6)])
def test_one_eigendecomposition_gives_every_ridge(shape):
    rng = np.random.default_rng(0)
    H, Y = np.abs(rng.normal(size=shape)), rng.normal(size=(shape[0], 3))
    held_out, targets = np.abs(rng.normal(size=(7, shape[1]))), rng.normal(size=(7, 3))
    ridges = [10.0**k for k in range(-8, 9)]
    expected = [
        np.mean((held_out @ np.linalg.solve(H.T @ H + ridge * np.eye(shape[1]), H.T @ Y) - targets) ** 2)
        for ridge in ridges
    ]
    found = validation_errors(H, Y, held_out, targets, ridges)
    np.testing.assert_allclose(found[3:], expected[3:], rtol=1e-6)
    assert found.argmin() == np.argmin(expected)


def test_rows_sorted_by_class_choose_as_shuffled_ones():
    """A split by position would hold out whole classes and choose a ridge of millions."""
    problem = Problem.draw(*[10] * 8, width=16)
    ordered = RanPAC(n_components=500).fit(problem.X, problem.y)
    assert ordered.ridge_ == problem.learn(RanPAC(n_components=500)).ridge_ < 1e4
    assert (ordered.predict(problem.X) == problem.y).mean() > 0.9


def test_per_task_follows_the_last_call_and_first_task_the_first():
    few, many = Problem.draw(2, 2, 2, seed=5), Problem.draw(*[9] * 6, width=12, seed=0)
    alone = [RanPAC(n_components=2048).fit(p.X, p.y).ridge_ for p in (few, many)]
    assert alone[0] != alone[1]
    both = RanPAC(n_components=2048).fit(few.X, few.y).partial_fit(many.X, many.y + 10)
    assert both.ridge_ == alone[1]
    frozen = RanPAC(n_components=2048, ridge="first-task").fit(many.X, many.y)
    assert frozen.ridge_ == frozen.partial_fit(few.X, few.y + 10).ridge_


def test_one_sample_per_class_leaves_the_ridge():
    problem = Problem.draw(6, 6, 6)
    model = RanPAC(n_components=100).fit(problem.X, problem.y)
    before = model.ridge_
    assert model.partial_fit(np.eye(12)[:2], [7, 8]).ridge_ == before
    assert RanPAC(n_components=100).fit(np.eye(12)[:2], [7, 8]).ridge_ == 50.0


def test_memo_is_saved_kept_and_checked(tmp_path):
    path = tmp_path / "model.safetensors"
    problem = Problem.draw(6, 6, 6)
    model = problem.learn(RanPAC(n_components=100))
    model.save(path)
    assert load(path).ridge_ == model.ridge_
    with pytest.raises(HyCalError):
        model.partial_fit(np.full((2, 12), np.nan), [7, 8])
    assert load(path).ridge_ == model.ridge_ == model.forget([0]).ridge_
    for memo in ([1], {"ridge": -1.0}, {"ridge": "small"}, {"ridge": float("nan")}, {"other": 1.0}):
        model.save(path)
        rewrite(path, lambda manifest, tensors, memo=memo: manifest.update(memo=memo))
        with pytest.raises(ModelFileError):
            load(path)


def test_merging_keeps_the_ridge_of_the_model_merged_into():
    one, two = Problem.draw(2, 2, 2, seed=5), Problem.draw(*[9] * 6, seed=0)
    left = RanPAC(n_components=2048).fit(one.X, one.y)
    before = left.ridge_
    assert left.merge(RanPAC(n_components=2048).fit(two.X, two.y + 10)).ridge_ == before


def test_more_samples_than_the_choice_takes(monkeypatch):
    problem = Problem.draw(*[30] * 6)
    monkeypatch.setattr("hycal.classifiers.ranpac._MOST_ROWS", 50)
    model = problem.learn(RanPAC(n_components=100))
    assert_agree(model.decision_function(problem.queries), textbook(problem, 100, model.ridge_))


def test_seed_draws_another_projection():
    problem = PROBLEMS[0]
    one, two = (problem.scores(RanPAC(n_components=50, ridge=1.0, random_state=seed)) for seed in (0, 1))
    assert not np.allclose(one, two)
    assert_agree(two, textbook(problem, 50, 1.0, seed=1))


def test_one_hot_has_a_column_for_a_class_without_samples():
    np.testing.assert_array_equal(one_hot(np.array([1, 0, 2])), [[1, 0, 0], [0, 0, 1], [0, 0, 1]])


@pytest.mark.parametrize("law", LAWS)
def test_ten_thousand_features_keep_the_laws(law):
    stream = Stream.synthetic(0, shots=[[3, 1], [4]], width=8, queries=4)
    LAWS[law](RanPAC(ridge=100.0), stream)
    assert learn(RanPAC(), stream.steps).ridge_ > 0
