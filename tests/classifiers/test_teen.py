from __future__ import annotations

import numpy as np
import pytest

from hycal import NCM, TEEN, HyCalError, load
from tests.classifiers.problems import PROBLEMS, Problem, assert_agree, softmax

PROBLEM = Problem.draw(9, 8, 12, 3, 2, 1, seed=4)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def calibrated(problem, base, drawn, shift=0.1, temperature=16.0):
    """Prototypes of the classes `drawn` after the soft calibration of the authors, and the weights of the base."""
    prototypes = unit(problem.means)
    weights = softmax(temperature * prototypes[drawn] @ prototypes[base].T)
    delta = unit(weights @ prototypes[base])
    prototypes[drawn] = (1 - shift) * prototypes[drawn] + shift * delta
    return prototypes, weights


def in_sessions(classifier, problem, *sessions):
    for labels in sessions:
        rows = np.isin(problem.y, labels)
        classifier.partial_fit(problem.X[rows], problem.y[rows])
    return classifier


def test_new_classes_are_drawn_towards_the_base():
    model = in_sessions(TEEN(), PROBLEM, [0, 1, 2], [3, 4], [5])
    prototypes, _ = calibrated(PROBLEM, [0, 1, 2], [3, 4, 5])
    assert_agree(model.class_scores(PROBLEM.queries), PROBLEM.queries @ unit(prototypes).T)
    assert_agree(model.class_scores(PROBLEM.queries, classes=[4, 1]), PROBLEM.queries @ unit(prototypes)[[4, 1]].T)


def test_with_all_others_every_class_is_drawn():
    expected = np.empty((len(PROBLEM.queries), 6))
    for label in range(6):
        others = [other for other in range(6) if other != label]
        prototypes, _ = calibrated(PROBLEM, others, [label], shift=0.4, temperature=8.0)
        expected[:, label] = PROBLEM.queries @ unit(prototypes[label])
    assert_agree(PROBLEM.scores(TEEN(base="others", shift=0.4, temperature=8.0)), expected)


def test_one_session_is_the_nearest_mean():
    assert_agree(PROBLEM.scores(TEEN()), PROBLEM.scores(NCM()))


@pytest.mark.parametrize("ridge", [0.5, 100.0])
def test_covariances_are_calibrated_too(ridge):
    """As published: the covariance of a new class is its own and the weighted sum of the base's, then corrcoef."""
    base, new = [0, 1, 2], [3, 4, 5]
    prototypes, weights = calibrated(PROBLEM, base, new)
    covariances = np.stack([np.cov(x.T) if len(x) > 1 else np.zeros((12, 12)) for x in PROBLEM.samples])
    covariances[new] += np.einsum("cb,bij->cij", weights, covariances[base])
    expected = np.empty((len(PROBLEM.queries), 6))
    for label, covariance in enumerate(covariances):
        shrunk = covariance + ridge * np.trace(covariance) / 12 * np.eye(12)
        away = PROBLEM.queries - unit(prototypes[label])
        expected[:, label] = -np.sum(away @ np.linalg.pinv(np.corrcoef(shrunk), rcond=1e-10) * away, axis=1)
    model = in_sessions(TEEN(metric="mahalanobis", ridge=ridge), PROBLEM, base, new)
    assert_agree(model.class_scores(PROBLEM.queries), expected)
    assert_agree(model.class_scores(PROBLEM.queries, classes=[5, 2]), expected[:, [5, 2]])


def test_one_shot_without_a_base_has_the_covariance_of_the_ridge():
    problem = PROBLEMS[3]
    away = problem.queries[:, None] - problem.means
    centred = away - away.mean(axis=2, keepdims=True)
    assert_agree(problem.scores(TEEN(metric="mahalanobis")), -11 / 12 * np.sum(centred**2, axis=2))


def test_the_base_is_stored_and_outlives_its_classes(tmp_path):
    model = in_sessions(TEEN(shift=0.5), PROBLEM, [0, 1], [2, 3], [1, 4])
    model.save(tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.class_scores(PROBLEM.queries), model.class_scores(PROBLEM.queries))
    plain = in_sessions(TEEN(shift=0.5), PROBLEM, [2, 3], [4]).class_scores(PROBLEM.queries)
    assert_agree(loaded.forget([0, 1]).class_scores(PROBLEM.queries), plain)


def test_a_renamed_class_stays_in_its_call():
    model = TEEN()
    assert model.rename_memo({"calls": [[0, 1], [2]]}, {0: 7}) == {"calls": [[1, 7], [2]]}
    assert model.rename_memo({}, {0: 7}) == {}


@pytest.mark.parametrize("memo", [{"calls": 3}, {"calls": [3]}, {"calls": [[0.5]]}, {"ridge": 1.0}])
def test_a_foreign_memo_is_refused(memo):
    model = TEEN().fit([[1.0, 0.0]], [0])
    with pytest.raises(HyCalError, match="TEEN remembers the labels of each call"):
        model.install(model.records_.with_memo(memo))
