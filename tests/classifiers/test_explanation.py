"""An explanation adds up to the score."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from hycal import HyCal
from hycal.testing.streams import Stream, learn


@pytest.mark.parametrize("fusion", ["image", "sum"])
def test_the_parts_make_the_score(fusion):
    stream = Stream.synthetic(2, shots=[[3, 1, 4], [2, 12], [20]], width=10)
    model = learn(HyCal(fusion=fusion), stream.steps)
    parts = model.explain(stream.queries)
    np.testing.assert_allclose(parts.score, expit(model.decision_function(stream.queries)), atol=1e-5)
    np.testing.assert_array_equal(parts.log_odds, model.decision_function(stream.queries))
    np.testing.assert_allclose(parts.weight, model.weights(model.counts_))
    assert (parts.distance > 0).all() and (np.abs(parts.cosine) <= 1 + 1e-6).all()
    assert (parts.cosine_level.argmax(axis=1) == parts.cosine.argmax(axis=1)).all()
    assert (parts.distance_level.argmax(axis=1) == parts.distance.argmin(axis=1)).all()
    assert parts.cosine_level is parts.cosine_level, "computed once, however many candidates ask for it"
    assert parts.distance_level is parts.distance_level
