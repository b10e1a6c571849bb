"""Probabilities and prediction sets keep what they promise on real embeddings; weights against a SciPy optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from hycal import GDA, NCM, HierarchicalHyCal, HyCal, HyCalError
from hycal.bench.metrics import calibration_error
from hycal.data.bundled import load_xd8
from hycal.uncertainty.temperature import Calibration, Pull, best_temperature, fit_weights
from tests.uncertainty.knowledge import same_knowledge

METHODS = {
    "HierarchicalHyCal": HierarchicalHyCal(),
    "NCM": NCM(),
    "GDA": GDA(zero_shot="none"),
    "HyCal": HyCal(fusion="image"),
}


@pytest.fixture(scope="module")
def xd8():
    return {name: domain for name, domain in load_xd8().items() if name in ("texture", "digit", "art", "galaxy")}


@pytest.fixture(scope="module", params=METHODS)
def fitted(request, xd8):
    classifier = METHODS[request.param]
    rng = np.random.default_rng(0)  # the first images of a class are often of one series
    for name, domain in xd8.items():
        mixed = rng.permutation(len(domain.train_y))
        rows = np.concatenate([mixed[domain.train_y[mixed] == c][:16] for c in range(len(domain.class_names))])
        labels = [f"{name}/{c}" for c in domain.train_y[rows]]
        classifier.partial_fit(domain.train_x[rows], labels, domain=name)
    return classifier


@pytest.fixture(scope="module")
def asked(xd8):
    X = np.concatenate([domain.test_x[::2] for domain in xd8.values()])
    return X, np.array([f"{name}/{c}" for name, domain in xd8.items() for c in domain.test_y[::2]])


def test_probabilities_are_those_of_the_most_likely_temperature(fitted, asked):
    chances = fitted.predict_proba(asked[0])
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, atol=1e-9)
    held_out = fitted.leave_one_out()
    scores, own = held_out.scores, held_out.samples.own

    def likelihood(temperature):
        return np.mean(log_softmax(scores / temperature, axis=1)[np.arange(len(own)), own])

    if not isinstance(fitted, HierarchicalHyCal):
        assert likelihood(fitted.temperature_) > max(likelihood(fitted.temperature_ * by) for by in (0.9, 1.1))


def test_probabilities_of_the_hierarchy_are_right_as_often_as_they_say(asked, xd8):
    fitted = HierarchicalHyCal()
    for name, domain in xd8.items():
        fitted.partial_fit(domain.train_x, [f"{name}/{c}" for c in domain.train_y], domain=name)
    chances = fitted.predict_proba(asked[0])
    right = fitted.classes_[chances.argmax(axis=1)] == asked[1]
    assert calibration_error(chances.max(axis=1), right) < 5.0


@pytest.mark.parametrize("coverage", [0.8, 0.95])
def test_sets_hold_the_right_answer_as_often_as_stated(fitted, asked, coverage):
    X, truth = asked
    sets = fitted.predict_set(X, coverage)
    assert all(len(answers) for answers in sets)
    assert np.array_equal([answers[0] for answers in sets], fitted.predict(X))
    assert abs(np.mean([label in answers for label, answers in zip(truth, sets, strict=True)]) - coverage) < 0.05


def test_what_cannot_be_held_out():
    one = NCM().fit([[1.0, 0.0], [0.0, 1.0]], ["a", "b"])
    assert one.temperature_ == 1.0
    assert one.predict_set([[1.0, 0.1]])[0].tolist() == ["a", "b"]  # nothing to rule a class out by
    for share in (0.0, 1.0, 5.0):
        with pytest.raises(HyCalError, match="expected a share"):
            one.predict_set([[1.0, 0.0]], share)


@pytest.mark.parametrize("method", [HyCal, HierarchicalHyCal, NCM])
def test_calibration_does_not_depend_on_calls_or_names(method):
    one, *others = same_knowledge(method)
    for other in others:
        assert other.temperature_ == pytest.approx(one.temperature_, rel=1e-4)


def test_threshold_is_the_order_statistic():
    calibration = Calibration(1.0, np.arange(1, 20) / 20)
    assert calibration.threshold(0.9) == pytest.approx(0.10)  # k = floor(20 * 0.1) = 2
    assert calibration.threshold(0.99) == 0.0
    assert calibration.threshold(1e-10) == pytest.approx(19 / 20)  # no more than all of them


def most_likely(evidence, own, pull):
    """The weights that SciPy finds for the same objective, and their loss."""

    def loss(w):
        return -log_softmax(np.tensordot(w, evidence, axes=1), axis=1)[np.arange(len(own)), own].sum() + pull.value(w)

    start = pull.centre
    found = minimize(lambda u: loss(u * start), np.ones(len(start)), bounds=[(1e-3, None)] * len(start), tol=1e-14)
    return found.x * start, loss


@pytest.mark.parametrize("kinds", [1, 2, 3])
@pytest.mark.parametrize("strength", [1e-3, 10.0])
def test_weights_are_those_of_a_general_optimiser(kinds, strength):
    rng = np.random.default_rng(kinds)
    own = rng.integers(0, 6, 150)
    evidence = rng.normal(size=(kinds, 150, 6))
    evidence[:, np.arange(150), own] += 0.8
    evidence *= np.array([1.0, 20.0, 0.1])[:kinds, None, None]
    pull = Pull(np.array([0.5, 0.05, 1.0])[:kinds], strength)
    expected, loss = most_likely(evidence, own, pull)
    weights = fit_weights(evidence, own, pull)
    np.testing.assert_allclose(weights, expected, rtol=1e-4)
    assert loss(weights) <= loss(expected) + 1e-9


def test_weights_stay_positive_where_evidence_misleads():
    evidence = np.zeros((1, 40, 2))
    evidence[0, :, 1] = 1.0
    assert fit_weights(evidence, np.zeros(40, int), Pull(np.array([2.0]), 1e-3))[0] == pytest.approx(2e-3)


def test_scores_that_are_all_alike_have_a_finite_temperature():
    assert np.isfinite(best_temperature(np.zeros((5, 3)), np.array([0, 1, 2, 0, 1])))
