from __future__ import annotations

import numpy as np

from hycal import NCM, SLDA
from hycal.classifiers.families import score_in_folds
from hycal.state.selection import Selection
from hycal.testing.streams import Stream, learn


def test_folds_of_small_classes_leave_out_one_sample_of_each():
    """NCM scores a class by its own samples alone, so with one sample of a class in a fold it is leave-one-out."""
    stream = Stream.synthetic(0, shots=[[3, 4], [2, 6]], width=8)
    fitted = learn(NCM(), stream.steps)
    records = fitted.records_
    samples = Selection.of(records).at(np.array([14, 0, 3, 9, 7, 5]))
    found, alone = score_in_folds(fitted, records, samples), fitted.leave_one_out(samples.rows).scores
    np.testing.assert_allclose(found[samples.each, samples.own], alone[samples.each, samples.own], atol=1e-9)


def test_folds_take_a_tenth_of_a_class_and_every_sample_once():
    stream = Stream.synthetic(1, shots=[[38, 3]], width=8)
    seen = []

    class Watched(SLDA):
        def derive(self, records, previous):
            seen.append(records.counts.tolist())
            return super().derive(records, previous)

    fitted = learn(Watched(), stream.steps)
    scores = score_in_folds(fitted, fitted.records_, Selection.of(fitted.records_))
    assert np.isfinite(scores).all()
    assert all(38 - counts[0] <= 4 and 3 - counts[1] <= 1 for counts in seen)
    assert sum(38 - counts[0] for counts in seen) == 38
    assert sum(3 - counts[1] for counts in seen) == 3
    assert len(seen) == 10
