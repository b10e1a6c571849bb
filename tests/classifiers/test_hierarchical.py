from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from hycal import GDA, HierarchicalHyCal, HyCal
from hycal.algebra.hierarchy_posterior import KINDS
from hycal.bench.domains import load_domains
from hycal.bench.sampling import draw_samples
from hycal.bench.settings import load_setting
from hycal.classifiers import hierarchy_weights
from hycal.data import load_xd8
from hycal.state.selection import Selection
from hycal.testing.laws import check_laws
from hycal.testing.streams import Stream, learn
from hycal.uncertainty.leave_one_out import scores_without

STREAM = Stream.synthetic(3, shots=[[3, 1, 4], [2, 6, 7], [5, 5]], width=12)


def test_text_weighs_less_as_shots_grow():
    rng = np.random.default_rng(0)
    shares = []
    for shots in (2, 12):
        stream = Stream.synthetic(7, shots=[[shots] * 30], width=24)
        step = stream.steps[0]
        noisy = {k: t + 0.05 * rng.normal(size=24) for k, t in step.text.items()}
        text = {k: t / np.linalg.norm(t) for k, t in noisy.items()}
        fitted = HierarchicalHyCal().fit(step.X, list(step.y), domain="d", text=text)
        parts = {part.name: part.share.std() for part in fitted.score_parts(stream.queries).parts}
        shares.append(parts["text"] / sum(parts.values()))
    assert shares[1] < shares[0]


def test_text_is_optional_in_each_domain():
    steps = [STREAM.steps[0], clone_without_text(STREAM.steps[1]), STREAM.steps[2]]
    mixed = learn(HierarchicalHyCal(), steps)
    assert [text is not None for text in mixed.snapshot().value.texts] == [True, False, True]
    alone = learn(HierarchicalHyCal(text="none"), steps)
    without = learn(HierarchicalHyCal(), [clone_without_text(step) for step in STREAM.steps])
    np.testing.assert_array_equal(alone.decision_function(STREAM.queries), without.decision_function(STREAM.queries))


def clone_without_text(step):
    return replace(step, text={})


def test_scores_are_log_probabilities():
    scores = learn(HierarchicalHyCal(), STREAM.steps).decision_function(STREAM.queries)
    np.testing.assert_allclose(np.exp(scores.astype(float)).sum(axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize("setting", ["xd8-balanced", "xd8-high-scale"])
def test_beats_hycal_and_gda_on_real_embeddings(setting):
    chosen = load_setting(setting)
    domains = load_domains(chosen)
    samples = draw_samples(chosen, 0, {name: domain.train_y for name, domain in domains.items()})
    last = {}
    for method in (HierarchicalHyCal(), GDA(zero_shot="none"), HyCal(fusion="image")):
        for name, domain in domains.items():
            labels = np.array(domain.labels)[list(samples[name].labels)]
            method.partial_fit(domain.train_x[list(samples[name].rows)], labels, domain=name)
        last[type(method).__name__] = 100 * np.mean(
            [np.mean(method.predict(d.test_x) == np.array(d.labels)[d.test_y]) for d in domains.values()]
        )
    assert last["HierarchicalHyCal"] > last["GDA"] + 1.0
    assert last["HierarchicalHyCal"] > last["HyCal"] + 2.0


def test_hardly_any_ridge_is_enough():
    stream = Stream.synthetic(0, shots=[[3, 2]], width=64)
    assert np.isfinite(learn(HierarchicalHyCal(ridge=1e-16), stream.steps).decision_function(stream.queries)).all()


@pytest.mark.parametrize(("shots", "share"), [(2, 2 / 3), (5, 1 / 2), (9, 1 / 2)])
def test_covariances_of_few_samples_have_more_of_the_identity(shots, share):
    """4, 16 and 32 degrees of freedom in 64 dimensions: odds of sqrt(64/16) to 1, then even odds."""
    stream = Stream.synthetic(0, shots=[[shots] * 4], width=64)
    fitted = learn(HierarchicalHyCal(), stream.steps).snapshot()
    centred = [record.samples.rows - record.samples.mean for record in fitted.records.ordered]
    S = sum(rows.T @ rows for rows in centred) / (4 * (shots - 1))
    expected = (1 - share) * S + share * np.trace(S) / 64 * np.eye(64)
    np.testing.assert_allclose(fitted.value.hierarchy.prior.within, expected, atol=1e-6)


def test_kernel_evidence_separates_classes_of_one_mean():
    """Two rings around one point have equal means, which no covariance that they share tells apart."""
    angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    radius = np.tile([0.15, 0.6], 30)
    X = np.stack([radius * np.cos(angles), radius * np.sin(angles), np.ones(60)], axis=1)
    clf = HierarchicalHyCal().fit(X[:40], (radius > 0.4)[:40].astype(int), domain="rings")
    assert clf.score(X[40:], (radius > 0.4)[40:].astype(int)) > 0.9


def test_kernel_evidence_without_weight_is_left_out():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 20)), np.repeat(np.arange(5), 40)  # nothing to learn
    posterior = HierarchicalHyCal().fit(X, y, domain="noise").snapshot().value
    assert posterior.kernels == (None,)
    assert posterior.weights.classes[0, 2] == 0.0


COVARIANCES = Stream.synthetic(1, shots=[[8] * 4, [8] * 3], width=4)  # of use in both domains


def test_covariance_evidence_keeps_every_law():
    fitted = learn(HierarchicalHyCal(), COVARIANCES.steps).snapshot().value
    assert all(found is not None for found in fitted.covariances) and (fitted.weights.classes[:, 4] > 0).all()
    check_laws(HierarchicalHyCal(), COVARIANCES)


def test_covariance_evidence_separates_classes_that_spread_in_their_own_directions():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 30)
    X = np.ones((120, 24)) + np.where(np.arange(24) // 6 == y[:, None], 0.5, 0.2) * rng.normal(size=(120, 24))
    learned, asked = np.arange(120) % 3 > 0, np.arange(120) % 3 == 0
    clf = HierarchicalHyCal().fit(X[learned], y[learned], domain="one")
    with patch.object(hierarchy_weights, "covariances_pay", return_value=False):
        without = HierarchicalHyCal().fit(X[learned], y[learned], domain="one").score(X[asked], y[asked])
    assert clf.score(X[asked], y[asked]) > without + 0.05


def test_covariance_evidence_without_weight_is_left_out():
    """All classes spread in the same few directions, where four samples of each say little."""
    rng = np.random.default_rng(0)
    y, wide = np.repeat(np.arange(40), 4), np.arange(16) < 4
    X = 1.0 + (~wide * 0.1 * rng.normal(size=(40, 16)))[y] + np.where(wide, 0.6, 0.05) * rng.normal(size=(160, 16))
    posterior = HierarchicalHyCal().fit(X, y, domain="alike").snapshot().value
    assert posterior.covariances == (None,)
    assert posterior.weights.classes[0, 4] == 0.0


@pytest.mark.parametrize("domains", ["named", "found"])
def test_held_out_scores_are_those_of_a_model_without_the_sample(domains):
    """Up to the weights of evidence and what all data say, which stay and move little with one of many samples."""
    stream = Stream.synthetic(2, shots=[[5] * 32, [4] * 32], width=10)
    fitted = learn(HierarchicalHyCal(domains=domains), stream.steps)
    current = fitted.snapshot()
    assert all(kernel is not None for kernel in current.value.kernels)
    samples = Selection.of(current.records)
    chosen = np.arange(0, len(samples.rows), 17)
    held_out = fitted.scores_without_each(current.value, current.records, samples.at(chosen))
    again = np.stack([scores_without(fitted, current.records, samples.at(np.array([at]))) for at in chosen])
    within = fitted.score_rows(current.value, samples.X[chosen], None)
    own = np.arange(len(chosen)), samples.own[chosen]
    error = np.abs(np.exp(held_out[own]) - np.exp(again[own])).mean()
    assert error < 0.05
    assert error < 0.5 * np.abs(np.exp(within[own].astype(float)) - np.exp(again[own])).mean()


def test_held_out_scores_with_covariances_are_those_of_a_model_without_the_sample():
    fitted = learn(HierarchicalHyCal(), COVARIANCES.steps)
    current = fitted.snapshot()
    samples = Selection.of(current.records)
    derived = current.value
    alone = replace(
        derived,
        weights=replace(
            derived.weights, classes=derived.weights.classes * np.eye(len(KINDS))[KINDS.index("covariance")]
        ),
    )
    held_out = fitted.scores_without_each(alone, current.records, samples)
    within = fitted.score_rows(alone, samples.X, None)
    own = samples.each, samples.own
    assert (held_out[own] < within[own]).all(), "a sample is less likely without itself"


def test_domains_are_found_without_names_where_held_out_samples_are_likelier_so():
    rng = np.random.default_rng(0)
    names, y = np.repeat(list("abcd"), 96), np.repeat(np.arange(64), 6)  # four domains of 16 classes of 6 samples
    noise = np.full((4, 16), 0.05)
    noise[np.arange(4)[:, None], np.arange(16).reshape(4, 4)] = 0.4  # each spreads in four directions of its own
    centres = 3 * np.eye(4, 16).repeat(16, axis=0) + 0.3 * rng.normal(size=(64, 16))
    X = centres[y] + noise.repeat(96, axis=0) * rng.normal(size=(384, 16))
    nameless = HierarchicalHyCal().fit(X, y)
    assert len(nameless.snapshot().value.hierarchy.domains) == 4
    assert set(nameless.domains_) == {""}
    named, found = HierarchicalHyCal(), HierarchicalHyCal(domains="found")
    for name in "abcd":
        rows = names == name
        for clf in (named, found):
            clf.partial_fit(X[rows], y[rows], domain=name)
    np.testing.assert_array_equal(found.decision_function(X), nameless.decision_function(X))
    np.testing.assert_allclose(found.decision_function(X), named.decision_function(X), atol=1e-4)
    alike = Stream.synthetic(4, shots=[[4] * 64], width=16).steps[0]
    assert len(HierarchicalHyCal().fit(alike.X, alike.y).snapshot().value.hierarchy.domains) == 1


def test_one_shot_classes_differ_by_direction_alone():
    """A class mean of one sample has a length by chance. The metric is that of the means, and the identity."""
    stream = Stream.synthetic(6, shots=[[1] * 5], width=12)
    step = replace(stream.steps[0], text={})
    fitted = learn(HierarchicalHyCal(), [step])
    means = fitted.snapshot().value.hierarchy.means.astype(float)
    u = means - means.mean(axis=0)
    P = np.linalg.inv(u.T @ u / np.mean(np.sum(u**2, axis=1)) + 2.0 * np.eye(12))
    lengths = np.sqrt(np.einsum("cd,de,ce->c", u, P, u))
    cosines = (stream.queries - means.mean(axis=0)) @ P @ u.T / lengths
    np.testing.assert_array_equal(fitted.predict(stream.queries), fitted.classes_[cosines.argmax(axis=1)])
    with_text = learn(HierarchicalHyCal(), stream.steps).snapshot().value.weights.classes[0]
    np.testing.assert_array_equal(with_text > 0, [False, True, False, True, False, False])


def test_counts_say_nothing_where_all_classes_have_the_same():
    fitted = learn(HierarchicalHyCal(), Stream.synthetic(4, shots=[[4] * 5, [2] * 3], width=12).steps)
    assert "count" not in {part.name for part in fitted.score_parts(STREAM.queries).parts}


def test_a_class_of_more_samples_is_not_answered_more_often():
    """Half of the classes of real disciplines have two images, the others sixteen; test images are of all alike."""
    disciplines, drawn, asked = load_xd8(), {True: [], False: []}, []
    for name in ("art", "digit", "galaxy", "medical", "texture"):
        domain = disciplines[name]
        shots = np.resize((2, 16), len(domain.class_names))
        rows = np.concatenate([np.flatnonzero(domain.train_y == label)[:most] for label, most in enumerate(shots)])
        fitted = HierarchicalHyCal().fit(domain.train_x[rows], domain.train_y[rows])
        count = next(part for part in fitted.score_parts(domain.test_x).parts if part.name == "count")
        for with_counts in (True, False):
            scores = fitted.decision_function(domain.test_x) - (0.0 if with_counts else count.share)
            drawn[with_counts].append(np.mean(shots[scores.argmax(axis=1)] == 16))
        asked.append(np.mean(shots[domain.test_y] == 16))
    excess = {with_counts: np.mean(shares) - np.mean(asked) for with_counts, shares in drawn.items()}
    assert abs(excess[True]) < 0.6 * excess[False]
