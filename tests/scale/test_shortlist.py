"""The shortlist against scoring every class."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from hycal import HyCal, HyCalError
from hycal.scale.shortlist import Shortlist
from hycal.testing.streams import Stream, learn

STREAM = Stream.synthetic(5, shots=[[3] * 200, [12] * 60, [1] * 140], width=32, queries=40)


def model(**parameters):
    return learn(HyCal(**parameters), STREAM.steps)


def truth(fitted):
    """Mean and deviation of both measures over all classes, from the dense evaluation."""
    cosines, closeness = (
        x.astype(np.float64) for x in fitted.snapshot().value.bank.evaluate(STREAM.queries.astype("f4"))
    )
    return [(x.mean(axis=0), x.std(axis=0, ddof=1)) for x in (cosines, closeness)]


@pytest.mark.parametrize("fusion", ["image", "concat", "sum"])
def test_all_classes_on_the_list_give_the_scores_of_the_model(fusion):
    fitted = model(fusion=fusion)
    shortlist = Shortlist(fitted, nearest=400, sample=400)
    columns, scores = shortlist.best(STREAM.queries, 400)
    every = fitted.class_scores(STREAM.queries)
    found = np.take_along_axis(every, columns, axis=1)
    assert (np.sort(columns, axis=1) == np.arange(400)).mean() > 0.99  # an approximate index may miss a far class
    np.testing.assert_allclose(scores, found, atol=2e-3)
    assert (shortlist.predict(STREAM.queries) == fitted.predict(STREAM.queries)).all()


@pytest.mark.parametrize("fusion", ["image", "concat"])
def test_closed_forms_are_exact_however_small_the_sample(fusion):
    fitted = model(fusion=fusion)
    (cosine, closeness), (true_cosine, true_closeness) = (
        Shortlist(fitted, sample=2).moments(STREAM.queries.astype("f4")),
        truth(fitted),
    )
    np.testing.assert_allclose(cosine, true_cosine, rtol=1e-5)
    np.testing.assert_allclose(closeness[0], true_closeness[0], rtol=1e-5)
    assert np.abs(closeness[1] / true_closeness[1] - 1).max() > 0.01, "the spread of the distance has none"


@pytest.mark.parametrize("fusion", ["image", "concat", "sum"])
def test_without_a_sample_every_moment_is_exact_and_the_best_classes_have_the_scores_of_the_model(fusion):
    fitted = model(fusion=fusion)
    shortlist = Shortlist(fitted, nearest=16, sample=None)
    np.testing.assert_array_equal(
        Shortlist(fitted, nearest=16, sample=2).exactly().best(STREAM.queries), shortlist.best(STREAM.queries)
    )
    np.testing.assert_allclose(shortlist.moments(STREAM.queries.astype("f4")), truth(fitted), rtol=1e-5)
    columns, scores = shortlist.best(STREAM.queries, 3)
    every = fitted.class_scores(STREAM.queries)
    np.testing.assert_allclose(scores, np.take_along_axis(every, columns, axis=1), atol=2e-3)


@pytest.mark.parametrize("fusion", ["image", "sum"])
def test_estimated_moments_are_near_and_a_full_sample_is_exact(fusion):
    fitted = model(fusion=fusion)
    mean, spread = truth(fitted)[1]
    for sample, tolerance in ((400, 1e-4), (100, 0.25)):
        found = Shortlist(fitted, sample=sample).moments(STREAM.queries.astype("f4"))[1]
        assert np.abs((found[0] - mean) / spread).max() < tolerance
        assert np.abs(found[1] / spread - 1).max() < tolerance


def test_a_short_list_finds_the_best_class():
    fitted = model()
    shortlist = Shortlist(fitted, nearest=16)
    assert (shortlist.predict(STREAM.queries) == fitted.predict(STREAM.queries)).mean() >= 0.95
    columns, scores = shortlist.best(STREAM.queries, 3)
    assert columns.shape == scores.shape == (40, 3) and (np.diff(scores, axis=1) <= 0).all()


def test_a_model_that_learned_more_needs_a_new_shortlist():
    fitted = model(fusion="image")
    shortlist = Shortlist(fitted)
    fitted.forget(STREAM.labels[0])
    with pytest.raises(HyCalError, match="Make a new Shortlist"):
        shortlist.predict(STREAM.queries)


def test_announced_classes_have_no_mean_image_yet():
    fitted = model().announce({10_000: np.eye(32)[0]})
    with pytest.raises(HyCalError, match="10000 has none yet"):
        Shortlist(fitted)


def test_without_usearch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(HyCalError, match=r"hycal\[shortlist\]"):
        Shortlist(model())


def test_the_literal_rule_has_no_shortlist():
    with pytest.raises(HyCalError, match="needs z-scores"):
        Shortlist(HyCal(rule="literal"))
