"""Gravity of fitted models: its identities, and what real embeddings show."""

from __future__ import annotations

import json
from dataclasses import astuple

import numpy as np
import pytest

from hycal import NCM, SLDA, FeCAM, HyCal, HyCalError, ZeroShot
from hycal.data import load_xd8
from hycal.gravity import Gravity, measure, uncalibrated, variety
from hycal.testing.streams import Stream, learn

METHODS = (NCM(), HyCal(fusion="image"), SLDA(), FeCAM())


def problem(seed=0):
    """A stream in which classes overlap, and queries: the samples of another draw of the same classes."""
    stream = Stream.synthetic(seed, shots=[[5, 4], [6, 5, 4], [9, 8]], width=6)
    rng = np.random.default_rng(seed)
    X = np.concatenate([step.X for step in stream.steps])
    y = [label for step in stream.steps for label in step.y]
    return stream, X + 0.4 * rng.normal(size=X.shape), y


@pytest.fixture(scope="module")
def xd8():
    """Five shots of every class of the bundled embeddings, and every third test image."""
    domains = load_xd8()

    def labels(domain, numbers):
        return [f"{domain.name}/{domain.class_names[number]}" for number in numbers]

    def fitted(classifier):
        for domain in domains.values():
            rows = np.concatenate(
                [np.flatnonzero(domain.train_y == label)[:5] for label in range(len(domain.class_names))]
            )
            classifier.partial_fit(domain.train_x[rows], labels(domain, domain.train_y[rows]), domain=domain.name)
        return classifier

    X = np.concatenate([domain.test_x[::3] for domain in domains.values()])
    y = [label for domain in domains.values() for label in labels(domain, domain.test_y[::3])]
    return fitted, X, y


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_is_lost_is_captured_or_drifted_less_gained(method, seed):
    stream, X, y = problem(seed)
    classifier = learn(type(method)(**method.get_params()), stream.steps)
    before = classifier.class_scores(X)
    gravity = measure(classifier, X, y)
    for one in gravity.drifts:
        assert one.alone - one.together == pytest.approx(one.captured + one.drifted - one.gained)
    asked = gravity.flow.asked
    right = np.array([one.together for one in gravity.drifts]) @ asked / asked.sum()
    assert right == pytest.approx(classifier.score(X, y))
    np.testing.assert_array_equal(classifier.class_scores(X), before)  # measuring changes nothing


def test_prototypes_move_only_where_classes_share_statistics():
    stream, X, y = problem()
    shift = {
        type(method): np.array([one.shift for one in measure(learn(method, stream.steps), X, y).drifts])
        for method in (NCM(), HyCal(fusion="image"), SLDA())
    }
    assert shift[NCM].max() < 1e-6
    assert shift[HyCal].max() < 1e-4
    assert shift[SLDA].min() > 1e-3


def test_a_method_that_scores_each_class_by_itself_does_not_drift():
    stream, X, y = problem()
    for one in measure(learn(NCM(), stream.steps), X, y).drifts:
        assert one.drifted == one.gained == 0.0


def test_far_domains_do_not_flow():
    rng = np.random.default_rng(0)
    X = np.concatenate([np.hstack([rng.random((20, 4)), np.zeros((20, 4))]), np.eye(8)[4:].repeat(5, axis=0)])
    y = [f"near/{row % 3}" for row in range(20)] + [f"far/{row // 5}" for row in range(20)]
    gravity = measure(NCM().fit(X, y), X, y)  # no domain named: the labels say it
    assert gravity.domains == ("far", "near")
    assert gravity.flow.counts.tolist() == [[20, 0], [0, 20]]
    assert not gravity.pull.any()
    assert all(one.captured == 0.0 for one in gravity.drifts)


def test_before_calibration_is_direction_alone():
    stream, X, _ = problem()
    hycal = learn(HyCal(fusion="image"), stream.steps)
    plain = uncalibrated(hycal)
    assert (plain.metric, hycal.metric) == ("cosine", "dynamic")
    nearest = learn(NCM(), stream.steps)
    np.testing.assert_array_equal(uncalibrated(learn(SLDA(), stream.steps)).predict(X), nearest.predict(X))


def test_json_gives_it_back():
    stream, X, y = problem()
    gravity = measure(learn(HyCal(fusion="image"), stream.steps), X, y)
    again = Gravity.from_json(json.loads(json.dumps(gravity.as_json(), allow_nan=False)))
    assert again.as_json() == gravity.as_json()
    assert again.method == "HyCal[fusion=image]"


def test_refusals_say_what_to_do():
    with pytest.raises(HyCalError, match="one domain"):
        measure(NCM().fit(np.eye(3), ["a", "b", "c"], domain="x"), np.eye(3), ["a", "b", "c"])
    stream, X, y = problem()
    with pytest.raises(HyCalError, match="not among"):
        measure(learn(NCM(), stream.steps), X, [99] * len(y))


def test_classes_that_are_only_announced_have_no_variety():
    text = dict(zip(["a/1", "b/1", "b/2"], np.eye(3), strict=True))
    gravity = measure(ZeroShot().announce(text), np.eye(3), ["a/1", "b/1", "b/2"])
    assert gravity.samples.tolist() == [0, 0]
    assert np.isnan(gravity.columns["visual entropy"]).all()
    assert gravity.as_json()["derived"]["visual entropy"] == [None, None]


@pytest.mark.parametrize("n", [20, 100])
def test_variety_hardly_depends_on_the_number_of_samples(n):
    """The eigenvalues put into the definition as they are would be 0.7 too low at 20 samples, and 0.22 at 100."""
    scales = 1.0 / np.sqrt(np.arange(1, 201))
    truth = np.log((scales**2).sum() ** 2 / (scales**4).sum())
    rng = np.random.default_rng(n)
    drawn = [variety(5.0 + scales * rng.normal(size=(n, 200))) for _ in range(50)]
    assert np.mean([one.entropy for one in drawn]) == pytest.approx(truth, abs=0.2)
    assert np.mean([one.spread for one in drawn]) == pytest.approx((scales**2).sum(), rel=0.05)


def test_variety_of_too_few_or_equal_is_missing():
    assert np.isnan(astuple(variety(np.eye(3)))).all()
    assert np.isnan(variety(np.ones((6, 4))).entropy)


def test_disciplines_hardly_take_each_others_images(xd8):
    """The claim of the paper on real embeddings: what little crosses, crosses between similar domains."""
    fitted, X, y = xd8
    gravity = measure(fitted(HyCal(fusion="image")), X, y)
    assert gravity.flow.counts.sum() == len(y)
    assert gravity.flow.crossing < 0.03
    art, texture, digit = (gravity.domains.index(name) for name in ("art", "texture", "digit"))
    assert gravity.flow.rates[texture, art] > gravity.flow.rates[texture, digit]
    errors = 1.0 - np.mean([one.together for one in gravity.drifts])
    assert gravity.flow.crossing < 0.15 * errors  # most errors stay inside the domain


def test_shared_statistics_move_prototypes_of_real_domains(xd8):
    fitted, X, y = xd8
    shifts = [one.shift for one in measure(fitted(SLDA()), X, y).drifts]
    assert min(shifts) > 0.002
    assert max(one.shift for one in measure(fitted(NCM()), X, y).drifts) < 1e-6
