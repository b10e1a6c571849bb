"""Tuning sees the learned samples alone, and makes them more likely."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.datasets import load_digits

from hycal import (
    GDA,
    KLDA,
    METHODS,
    NCM,
    SLDA,
    DualRAIL,
    HierarchicalHyCal,
    HyCal,
    HyCalError,
    LoRanPAC,
    PrimalRAIL,
    ProKeR,
    RanPAC,
)
from hycal.state.selection import Selection
from hycal.testing.streams import Stream, learn
from hycal.uncertainty.leave_one_out import score_held_out, score_held_out_by_value

STREAM = Stream.synthetic(0, shots=[[6, 5, 7], [8, 6]], width=16)


def test_every_method_has_values_that_it_accepts():
    without = {name for name, method in METHODS.items() if not method.tuning_grid}
    assert without == {"ZeroShot", *(name for name in METHODS if not METHODS[name]().get_params())}
    for method in METHODS.values():
        for parameter, tried in method.tuning_grid.items():
            for value in tried:
                method(**{parameter: value}).check_parameters()


def likelihood(found):
    """Return the mean log probability of the right answers, at the best of many temperatures."""
    each, own = found.samples.each, found.samples.own
    return max(log_softmax(found.scores / t, axis=1)[each, own].mean() for t in np.geomspace(1e-4, 1e4, 800))


def test_what_is_worse_is_not_chosen():
    X, y = load_digits(return_X_y=True)
    fitted = SLDA(shrinkage=0.1).fit(X[:150], y[:150])
    before = likelihood(fitted.leave_one_out())
    assert likelihood(fitted.tune().leave_one_out()) > before + 0.01


def test_a_parameter_without_effect_keeps_its_value():
    tuned = learn(HyCal(metric="cosine", alpha=10, beta=5, reg=1e-2), STREAM.steps).tune()
    assert (tuned.alpha, tuned.beta, tuned.reg) == (10, 5, 1e-2)


def test_a_method_derived_from_another_is_tuned_like_it():
    class Mine(NCM):
        """Nothing new."""

    assert learn(Mine(), STREAM.steps).tune().get_params() == learn(NCM(), STREAM.steps).tune().get_params()


@pytest.mark.parametrize("method", [HyCal, SLDA, GDA, DualRAIL, NCM, HierarchicalHyCal])
def test_held_out_samples_are_no_less_likely_after_tuning(method):
    fitted = learn(method(), STREAM.steps)
    before = likelihood(fitted.leave_one_out())
    tuned = fitted.tune()
    assert tuned is fitted
    assert likelihood(tuned.leave_one_out()) >= before - 1e-3  # the grid of temperatures is coarse
    again = learn(method(), STREAM.steps).tune()
    assert again.get_params() == tuned.get_params()
    np.testing.assert_array_equal(again.class_scores(STREAM.queries), tuned.class_scores(STREAM.queries))


def test_one_shot_cannot_be_tuned():
    with pytest.raises(HyCalError, match="Learn more images"):
        NCM().fit([[1.0, 0.0], [0.0, 1.0]], ["a", "b"]).tune()


@pytest.mark.parametrize(
    ("method", "parameter"),
    [
        (RanPAC(n_components=200, ridge=1.0), "ridge"),
        (RanPAC(n_components=20, ridge=1.0), "ridge"),  # features fewer than samples: nothing is shared
        (PrimalRAIL(n_components=200), "ridge"),
        (PrimalRAIL(n_components=200, zero_shot="none"), "ridge"),
        (PrimalRAIL(n_components=20), "fusion_weight"),
        (PrimalRAIL(n_components=200), "fusion_weight"),
        (DualRAIL(), "fusion_weight"),
        (DualRAIL(), "ridge"),
        (LoRanPAC(n_components=None), "truncation"),
        (LoRanPAC(n_components=16), "truncation"),
        (ProKeR(), "beta"),
        (ProKeR(), "ridge"),
        (ProKeR(), "weight"),
        (DualRAIL(), "gamma"),
        (KLDA(n_components=100), "gamma"),
        (KLDA(n_components=100), "reg"),
        (KLDA(n_components=20, ensemble=2), "reg"),
    ],
)
def test_values_together_score_as_one_by_one(method, parameter):
    fitted = learn(method, STREAM.steps)
    records, values = fitted.snapshot().records, method.tuning_grid[parameter]
    samples = Selection.of(records)
    together = list(score_held_out_by_value(fitted, records, samples, parameter, values))
    for value, scores in zip(values, together, strict=True):
        alone = fitted.set_params(**{parameter: value})
        expected = score_held_out(alone, alone.derive(records, None), records, samples).scores
        np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-6)
