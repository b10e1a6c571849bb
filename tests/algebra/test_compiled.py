"""The compiled loops against the NumPy forms, which define the results."""

from __future__ import annotations

import numpy as np
import pytest

from hycal import HyCal
from hycal.algebra import loops, scores
from hycal.data import load_xd8

pytest.importorskip("numba")


def measures(spread: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    found = rng.normal(0.6, 0.05, size=(2, 90, 33)).astype(np.float32)
    found[:, 7] += spread  # one class far above the others
    found[:, :, 5] = 0.25  # a query for which all classes are equal
    return tuple(found)


@pytest.mark.parametrize("spread", [0.0, 50.0])
@pytest.mark.parametrize("w", [0.0, 0.4, 1.0])
def test_the_blend_is_that_of_numpy(monkeypatch, spread, w):
    weights = np.linspace(w / 2, w, 90)
    expected = scores.blend_measures(*measures(spread), weights).copy()
    monkeypatch.setattr(loops, "_MANY", 0)
    found = scores.blend_measures(*measures(spread), weights)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)
    assert (np.abs(expected).max() > 33.0) == (spread > 0)  # beyond eight deviations, or not


@pytest.mark.parametrize("fusion", ["sum", "concat", "image"])
def test_real_images_have_the_scores_of_numpy(monkeypatch, fusion):
    discipline = load_xd8()["aircraft"]
    X, y = discipline.train_x[:400], discipline.train_y[:400]
    text = {int(label): X[y == label][0][::-1] for label in np.unique(y)}
    model = HyCal(fusion=fusion).partial_fit(X, y, text=text)
    model.partial_fit(discipline.train_x[400:401], [10_000], text={10_000: X[0]})  # a class of one image
    expected = model.class_scores(discipline.test_x)
    monkeypatch.setattr(loops, "_MANY", 0)
    found = model.class_scores(discipline.test_x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
    assert (found != expected).any()  # the loops were used


def test_without_numba_or_for_little_work_numpy_does(monkeypatch):
    assert loops.compiled_loops(10) is None
    monkeypatch.setattr(loops, "_loaded", lambda: None)
    assert loops.compiled_loops(2**30) is None
