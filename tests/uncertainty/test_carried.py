"""The calibration and what is unknown, carried over small changes."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

from hycal import NCM, HierarchicalHyCal, HyCal
from hycal.state.changes import Changes
from hycal.testing.streams import Stream, learn


@pytest.fixture
def stream():
    return Stream.synthetic(0, shots=[[40] * 14, [50] * 10], width=16, queries=40)


def _anew(fitted):
    anew = fitted.with_parameters()
    anew.install(fitted.records_)
    return anew.calibration_


def test_a_calibration_follows_few_changes_and_is_fitted_for_many(stream):
    fitted = learn(NCM(), stream.steps)
    before = fitted.calibration_
    step = stream.steps[0]
    fitted.unlearn(step.X[:3], step.y[:3])
    kept, anew = fitted.calibration_, _anew(fitted)
    assert kept.likelihood.probe is before.likelihood.probe
    assert kept.temperature == pytest.approx(anew.temperature, rel=2e-3)
    np.testing.assert_allclose(kept.own, anew.own, atol=0.02)
    assert kept.floor == 1.0 / (2.0 * (len(step.y) + len(stream.steps[1].y) - 3 + 1))
    fitted.unlearn(step.X[3:30], step.y[3:30])
    assert fitted.calibration_.likelihood.probe is not before.likelihood.probe


def test_a_temperature_follows_an_image_of_another_class(stream):
    fitted = learn(NCM(), stream.steps)
    before, (first, second) = fitted.calibration_, stream.steps
    asked = np.flatnonzero([label == second.y[0] for label in second.y])[:1]
    for label in first.y[:5]:
        fitted.unlearn(second.X[asked], [second.y[0]]).partial_fit(second.X[asked], [label], domain=first.domain)
        assert fitted.calibration_.temperature == pytest.approx(_anew(fitted).temperature, rel=0.02)
        fitted.unlearn(second.X[asked], [label]).partial_fit(second.X[asked], [second.y[0]])
    assert fitted.calibration_.temperature == pytest.approx(before.temperature, rel=0.02)


def test_a_temperature_is_fitted_anew_where_all_scores_change(stream):
    fitted = learn(NCM(), stream.steps)
    before = fitted.calibration_
    margins = 2.0 * before.likelihood.margins
    stale = replace(before, likelihood=replace(before.likelihood, margins=margins, unwatched=2))
    changes = Changes.between(fitted.records_, fitted.records_)
    assert before.after(changes, fitted, fitted.snapshot().value, None).temperature == pytest.approx(before.temperature)
    assert stale.after(changes, fitted, fitted.snapshot().value, None) is None


def test_a_first_class_with_two_images_is_calibrated():
    X = Stream.synthetic(0, shots=[[1] * 1100], width=8).steps[0].X
    fitted = learn(NCM(), []).partial_fit(X, np.arange(1100))
    assert not len(fitted.calibration_.own)
    fitted.partial_fit(X[:1] + 0.01, [0])
    assert len(fitted.calibration_.own)


@pytest.mark.parametrize(
    "method", [HyCal(fusion="image"), HierarchicalHyCal(), NCM()], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize("shots", [[[150] * 10, [1]], [[20] * 60, [1]], [[4] * 300, [2]]], ids=str)
def test_one_image_of_a_new_class_or_of_a_small_one_leaves_no_stale_probability(method, shots):
    stream = Stream.synthetic(0, shots=shots, width=16, queries=100)
    fitted = learn(method.with_parameters(), stream.steps[:1])
    step = stream.steps[1]
    for row in range(len(step.y)):
        fitted.predict_proba(stream.queries)
        learn(fitted, [step.rows([row])])
        anew = copy.copy(fitted).refresh().predict_proba(stream.queries)
        np.testing.assert_allclose(fitted.predict_proba(stream.queries), anew, atol=0.02)


def test_a_small_model_is_always_calibrated_anew():
    stream = Stream.synthetic(0, shots=[[20] * 5], width=8)
    fitted = learn(NCM(), stream.steps)
    before = fitted.calibration_.own
    fitted.unlearn(stream.steps[0].X[:1], stream.steps[0].y[:1])
    assert fitted.calibration_.own is not before


def test_familiarity_follows_a_new_class(stream):
    first, second = stream.steps
    new = [row for row, label in enumerate(second.y) if label == second.y[-1]]
    others = [row for row, label in enumerate(second.y) if label != second.y[-1]]
    fitted = learn(NCM(), [first, second.rows(others)])
    before, asked = fitted.familiarity_, second.X[new[15:]]
    unknown = fitted.unknown(asked).mean()
    learn(fitted, [second.rows(new[:15])])
    kept, anew = fitted.familiarity_, fitted.with_parameters()
    assert kept.held_out is before.held_out and fitted.unknown(asked).mean() < 0.5 * unknown
    anew.install(fitted.records_)
    for queries in (asked, stream.queries):
        np.testing.assert_allclose(fitted.familiarity(queries), anew.familiarity(queries), atol=0.5)


def test_refresh_fits_everything_anew(stream):
    fitted = learn(NCM(), stream.steps)
    before = fitted.calibration_
    fitted.unlearn(stream.steps[0].X[:1], stream.steps[0].y[:1])
    assert fitted.calibration_.likelihood.probe is before.likelihood.probe
    assert fitted.refresh().calibration_.likelihood.probe is not before.likelihood.probe
