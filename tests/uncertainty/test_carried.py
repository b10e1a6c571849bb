"""The calibration and what is unknown, carried over small changes."""

from __future__ import annotations

import numpy as np
import pytest

from hycal import NCM
from hycal.testing.streams import Stream, learn


@pytest.fixture
def stream():
    return Stream.synthetic(0, shots=[[40] * 14, [50] * 10], width=16, queries=40)


def test_a_calibration_is_kept_for_few_changes_and_fitted_for_many(stream):
    fitted = learn(NCM(), stream.steps)
    before = fitted.calibration_
    step = stream.steps[0]
    fitted.unlearn(step.X[:3], step.y[:3])
    kept = fitted.calibration_
    assert kept.temperature == before.temperature and kept.own is before.own
    assert kept.floor == 1.0 / (2.0 * (len(step.y) + len(stream.steps[1].y) - 3 + 1))
    fitted.unlearn(step.X[3:30], step.y[3:30])
    assert fitted.calibration_.own is not before.own


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
    assert fitted.calibration_.own is before.own
    assert fitted.refresh().calibration_.own is not before.own
