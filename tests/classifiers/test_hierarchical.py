from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hycal import GDA, HierarchicalHyCal, HyCal
from hycal.bench.domains import load_domains
from hycal.bench.sampling import draw_samples
from hycal.bench.settings import load_setting
from hycal.testing.streams import Stream, learn

STREAM = Stream.synthetic(3, shots=[[3, 1, 4], [2, 6, 7], [5, 5]], width=12)


def test_text_weighs_less_as_shots_grow():
    rng = np.random.default_rng(0)
    weights = []
    for shots in (2, 12):
        stream = Stream.synthetic(7, shots=[[shots] * 30], width=24)
        step = stream.steps[0]
        noisy = {k: t + 0.05 * rng.normal(size=24) for k, t in step.text.items()}
        text = {k: t / np.linalg.norm(t) for k, t in noisy.items()}
        fitted = HierarchicalHyCal().fit(step.X, list(step.y), domain="d", text=text).snapshot().value
        distance, direction, names = fitted.weights.classes[0]
        weights.append(names / (distance + direction))
    assert weights[1] < weights[0]


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
