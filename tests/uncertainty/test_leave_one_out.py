"""Held-out scores in closed form are those of a model derived again without the sample."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from hycal import (
    APE,
    GDA,
    KLDA,
    METHODS,
    NCM,
    SLDA,
    TEEN,
    AnaCP,
    DualRAIL,
    FeCAM,
    HierarchicalHyCal,
    HyCal,
    LoRanPAC,
    PrimalRAIL,
    ProKeR,
    RanPAC,
    TipAdapter,
    ZeroShot,
)
from hycal.state.selection import Selection
from hycal.testing.streams import Stream, learn
from hycal.uncertainty.leave_one_out import scores_without

VARIANTS = {
    "HyCal": HyCal(),
    "HyCal step": HyCal(fusion="image", alpha=4, beta=0),
    "HyCal literal": HyCal(rule="literal", alpha=4),
    "HyCal concat": HyCal(fusion="concat", rule="released", alpha=4),
    "ZeroShot": ZeroShot(),
    "NCM": NCM(),
    "NCM euclidean": NCM(metric="euclidean"),
    "TEEN": TEEN(shift=0.4),
    "TEEN others": TEEN(shift=0.4, base="others"),
    "SLDA": SLDA(),
    "GDA": GDA(),
    "GDA alone": GDA(zero_shot="none", alpha=0.5),
    "FeCAM": FeCAM(),
    "FeCAM few-shot": FeCAM(variant="few-shot", alpha1=1),
    "RanPAC narrow": RanPAC(n_components=12, ridge=3.0),
    "RanPAC wide": RanPAC(n_components=64, ridge=3.0),
    "KLDA": KLDA(n_components=48),
    "KLDA narrow": KLDA(n_components=12, reg=0.1),
    "PrimalRAIL": PrimalRAIL(n_components=64),
    "PrimalRAIL alone": PrimalRAIL(n_components=12, zero_shot="none"),
    "DualRAIL": DualRAIL(),
    "DualRAIL alone": DualRAIL(zero_shot="none"),
    "TipAdapter": TipAdapter(),
    "APE": APE(alpha=10.0, share=0.6),
    "ProKeR": ProKeR(),
    "ProKeR proximal": ProKeR(zero_shot="none", weight=1.0),
}
STREAMS = {
    "few": Stream.synthetic(0, shots=[[3, 1, 4], [2, 6], [5]], width=16),
    "many": Stream.synthetic(1, shots=[[12, 9], [20, 1]], width=6),
}


def test_every_method_is_here():
    others = {HierarchicalHyCal, LoRanPAC, AnaCP}  # they keep something as it is, or leave out more than one sample
    assert {type(classifier) for classifier in VARIANTS.values()} | others == set(METHODS.values())


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("classifier", VARIANTS.values(), ids=VARIANTS)
def test_closed_form_is_exact(classifier, stream):
    fitted = learn(clone(classifier), stream.steps)
    current = fitted.snapshot()
    samples = Selection.of(current.records)
    closed = fitted.scores_without_each(current.value, current.records, samples.at(np.flatnonzero(samples.counts > 1)))
    assert closed is not None, "no closed form"
    assert fitted.leaves_out_quickly()
    found = fitted.leave_one_out()
    again = np.stack([scores_without(fitted, current.records, samples.at(np.array([i]))) for i in samples.each])
    np.testing.assert_array_equal(np.isinf(found.scores), np.isinf(again))
    finite = np.isfinite(again)
    scale = 1.0 + np.abs(again[finite]).max()
    assert np.abs(found.scores[finite] - again[finite]).max() <= 2e-5 * scale


def test_rows_are_those_of_all():
    fitted = learn(NCM(), STREAMS["few"].steps)
    every, some = fitted.leave_one_out(), fitted.leave_one_out(rows=[2, 7])
    np.testing.assert_allclose(some.scores, every.scores[[2, 7]], rtol=1e-12)
    np.testing.assert_array_equal(some.hits, every.hits[[2, 7]])
    masked = fitted.leave_one_out(rows=np.isin(np.arange(len(every.hits)), [2, 7]))
    np.testing.assert_array_equal(masked.scores, some.scores)


def test_the_last_sample_of_all_has_no_scores():
    fitted = NCM().fit([[1.0, 0.0]], ["only"])
    assert np.isinf(fitted.leave_one_out().scores).all()


def test_a_method_without_a_closed_form_is_derived_again():
    class Plain(NCM):
        def scores_without_each(self, derived, records, samples):
            return None

    steps = STREAMS["few"].steps
    plain, closed = (learn(method(), steps) for method in (Plain, NCM))
    np.testing.assert_allclose(plain.leave_one_out().scores, closed.leave_one_out().scores, atol=1e-9)


def test_methods_that_derive_again_say_so():
    fitted = learn(KLDA(n_components=16, mode="faithful"), STREAMS["few"].steps)
    assert not fitted.leaves_out_quickly()
    assert learn(AnaCP(n_components=16, replay=5), STREAMS["few"].steps).leaves_out_quickly(), "by a few models"
