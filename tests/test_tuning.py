"""Tuning sees the learned samples alone, and makes them more likely."""

from __future__ import annotations

import numpy as np
import pytest

from hycal import GDA, METHODS, NCM, SLDA, DualRAIL, HierarchicalHyCal, HyCal, HyCalError
from hycal.leave_one_out import Samples
from hycal.streams import Stream, learn
from hycal.tuning import VALUES, _likelihood

STREAM = Stream.synthetic(0, shots=[[6, 5, 7], [8, 6]], width=16)


def test_every_method_has_values_that_it_accepts():
    assert set(VALUES) == set(METHODS)
    for name, values in VALUES.items():
        for parameter, tried in values.items():
            for value in tried:
                METHODS[name](**{parameter: value})._check_params()


@pytest.mark.parametrize("method", [HyCal, SLDA, GDA, DualRAIL, NCM, HierarchicalHyCal])
def test_held_out_samples_are_no_less_likely_after_tuning(method):
    fitted = learn(method(), STREAM.steps)
    records = fitted._current().records
    before = _likelihood(fitted, records, Samples.of(records))
    tuned = fitted.tune()
    assert tuned is fitted
    assert _likelihood(tuned, records, Samples.of(records)) >= before - 1e-9
    again = learn(method(), STREAM.steps).tune()
    assert again.get_params() == tuned.get_params()
    np.testing.assert_array_equal(again.decision_function(STREAM.queries), tuned.decision_function(STREAM.queries))


def test_one_shot_cannot_be_tuned():
    with pytest.raises(HyCalError, match="Learn more images"):
        NCM().fit([[1.0, 0.0], [0.0, 1.0]], ["a", "b"]).tune()
