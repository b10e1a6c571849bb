"""Probabilities and sets keep what they promise on real embeddings; the temperature against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from hycal import GDA, NCM, HierarchicalHyCal, HyCal, HyCalError
from hycal.bench.metrics import calibration_error
from hycal.data.bundled import load_xd8
from hycal.uncertainty.calibration import Calibration, TemperaturePrior
from hycal.validation import unit_rows
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


def prior_centre(fitted):
    """T0 by its definition: from the scores of class means, their cosines and the counts."""
    records = fitted.records_
    means = unit_rows(np.stack([record.samples.rows.mean(axis=0) for record in records.ordered]))
    scores = np.sort(fitted.decision_function(means).astype(float), axis=1)
    cosines = means.astype(float) @ means.T - 2.0 * np.eye(len(means))
    separation, shots = np.mean(1.0 - cosines.max(axis=1)), np.exp(np.mean(np.log(records.counts)))
    prior = TemperaturePrior()
    return prior.level * np.mean(scores[:, -1] - scores[:, -2]) * separation**prior.separation * shots**prior.shots


def test_the_temperature_is_the_most_probable_one(fitted, asked):
    chances = fitted.predict_proba(asked[0])
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, atol=1e-9)
    held_out, centre, prior = fitted.leave_one_out(), prior_centre(fitted), TemperaturePrior()
    scores, samples = held_out.scores, held_out.samples

    def loss(temperature):
        likely = log_softmax(scores / temperature, axis=1)[samples.each, samples.own]
        penalty = 0.5 * prior.strength * np.log(temperature / centre) ** 2
        return penalty - np.sum(likely * (samples.counts - 1) / samples.counts)

    found = minimize_scalar(lambda log: loss(np.exp(log)), bracket=(np.log(centre) - 1, np.log(centre) + 1))
    own = 0.0
    if fitted.fixed_temperature is not None:
        assert fitted.fixed_temperature == 1.0
        own = len(samples.rows) ** 2 / (len(samples.rows) ** 2 + 300**2)
    assert np.log(fitted.temperature_) == pytest.approx((1 - own) * found.x, abs=1e-3)


@pytest.mark.parametrize("nodes, tolerance", [(3, 1e-12), (41, 5e-3)])
def test_answers_are_averaged_over_temperatures_and_no_surer_than_the_floor_allows(fitted, asked, nodes, tolerance):
    chances, n, C = fitted.predict_proba(asked[0]), fitted.counts_.sum(), len(fitted.classes_)
    held_out = len(fitted.leave_one_out().samples.rows)
    spread = 0.0 if fitted.fixed_temperature is None else held_out**2 / (held_out**2 + 300**2) / np.sqrt(20)
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    scores = fitted.decision_function(asked[0]).astype(float) / fitted.temperature_
    parts = [softmax(scores * np.exp(-spread * point), axis=1) for point in points]
    expected, floor = np.average(parts, axis=0, weights=weights), 1 / (2 * (n + 1))
    np.testing.assert_allclose(chances, (1 - floor) * expected + floor / C, atol=tolerance)


def test_one_image_of_a_class_is_never_certain(xd8):
    domain = xd8["texture"]
    rows = [np.flatnonzero(domain.train_y == c)[0] for c in range(2)]
    fitted = HierarchicalHyCal().fit(domain.train_x[rows], domain.train_y[rows])
    assert fitted.predict_proba(domain.test_x).max() <= 1 - 1 / 12  # n = 2: a share of 1/6, half of it to the other


@pytest.mark.parametrize("classes, shots", [(2, 2), (5, 1), (5, 2)])
def test_small_problems_are_right_as_often_as_they_say(classes, shots):
    hits, surest = [], []
    rng = np.random.default_rng(classes)
    for domain in load_xd8().values():
        for _ in range(4):
            chosen = rng.permutation(len(domain.class_names))[:classes]
            rows = np.concatenate([rng.permutation(np.flatnonzero(domain.train_y == c))[:shots] for c in chosen])
            asked = np.flatnonzero(np.isin(domain.test_y, chosen))[::4]
            fitted = HierarchicalHyCal().fit(domain.train_x[rows], domain.train_y[rows])
            chances = fitted.predict_proba(domain.test_x[asked])
            hits.append(fitted.classes_[chances.argmax(axis=1)] == domain.test_y[asked])
            surest.append(chances.max(axis=1))
    assert calibration_error(np.concatenate(surest), np.concatenate(hits)) < 8.0


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
    calibration = Calibration(1.0, 0.0, np.arange(1, 20) / 20)
    assert calibration.threshold(0.9) == pytest.approx(0.10)  # k = floor(20 * 0.1) = 2
    assert calibration.threshold(0.99) == 0.0
    assert calibration.threshold(1e-10) == pytest.approx(19 / 20)  # no more than all of them


def test_one_shot_classes_with_texts_have_the_temperature_of_the_method():
    X = np.eye(4, dtype=np.float32)
    texts = dict(zip("abcd", X, strict=True))
    with_texts = HierarchicalHyCal().fit(X, list("abcd"), text=texts)
    without = HierarchicalHyCal().fit(X, list("abcd")).temperature_
    assert with_texts.temperature_ == 1.0 != without
    unused = HierarchicalHyCal(text="none").fit(X, list("abcd"), text=texts)
    assert unused.temperature_ == without
