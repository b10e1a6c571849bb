"""An explanation adds up to the score, for every method that gives one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from hycal import NCM, HierarchicalHyCal, HyCal
from hycal.testing.streams import Stream, learn


@pytest.mark.parametrize("fusion", ["image", "sum"])
def test_the_parts_make_the_score(fusion):
    stream = Stream.synthetic(2, shots=[[3, 1, 4], [2, 12], [20]], width=10)
    model = learn(HyCal(fusion=fusion), stream.steps)
    parts = model.explain(stream.queries)
    np.testing.assert_allclose(parts.score, expit(model.class_scores(stream.queries)), atol=1e-5)
    np.testing.assert_array_equal(parts.log_odds, model.class_scores(stream.queries))
    np.testing.assert_allclose(parts.weight, model.weights(model.counts_))
    assert (parts.distance > 0).all() and (np.abs(parts.cosine) <= 1 + 1e-6).all()
    assert (parts.cosine_level.argmax(axis=1) == parts.cosine.argmax(axis=1)).all()
    assert (parts.distance_level.argmax(axis=1) == parts.distance.argmin(axis=1)).all()
    assert parts.cosine_level is parts.cosine_level, "computed once, however many candidates ask for it"
    assert parts.distance_level is parts.distance_level


@pytest.mark.parametrize("text", ["auto", "none"])
def test_the_evidence_of_the_hierarchy_is_the_posterior_above_its_mean(text):
    stream = Stream.synthetic(2, shots=[[3, 1, 4], [2, 12], [20]], width=10)
    model = learn(HierarchicalHyCal(text=text), stream.steps)
    found = model.score_parts(stream.queries)
    scores = model.class_scores(stream.queries)
    np.testing.assert_allclose(found.scores, scores, atol=1e-5)
    total = sum(part.share for part in found.parts)
    np.testing.assert_allclose(total, scores - scores.mean(axis=1, keepdims=True), atol=1e-4)
    names = [part.name for part in found.parts]
    assert names[:2] == ["distance", "direction"] and names[-1] == "domain"
    assert ("text" in names) == (text == "auto")


def test_methods_without_parts_say_so():
    stream = Stream.synthetic(2, shots=[[3, 1, 4], [2, 12], [20]], width=10)
    assert learn(HyCal(), stream.steps).score_parts(stream.queries).quantity == "score"
    assert learn(NCM(), stream.steps).score_parts(stream.queries) is None
