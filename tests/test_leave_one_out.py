"""Leaving one out: the fast way for HyCal gives what taking each sample out and scoring it gives."""

from __future__ import annotations

import numpy as np
import pytest

from hycal import NCM, HyCal, HyCalError
from hycal.data import load_xd8
from hycal.leave_one_out import _fill_one_by_one, leave_one_out
from hycal.streams import Stream, learn

SHOTS = [[3, 1, 4], [2, 6, 1], [5, 12, 30]]


def one_by_one(model):
    records = model._table
    columns = np.repeat(np.arange(len(records.labels)), records.counts)
    scores = np.full((len(columns), len(records.labels)), -np.inf, np.float32)
    _fill_one_by_one(model, records, columns, scores, lambda done, total: None)
    return scores


@pytest.mark.parametrize("fusion", ["image", "sum", "concat"])
@pytest.mark.parametrize("rule", ["paper", "released"])
@pytest.mark.parametrize("metric", ["dynamic", "mahalanobis"])
@pytest.mark.parametrize("width", [6, 40])
def test_fast_is_exact(fusion, rule, metric, width):
    model = learn(
        HyCal(fusion=fusion, rule=rule, metric=metric, alpha=4, beta=2),
        Stream.synthetic(3, shots=SHOTS, width=width).steps,
    )
    fast, slow = leave_one_out(model).scores, one_by_one(model)
    np.testing.assert_array_equal(np.isfinite(fast), np.isfinite(slow))
    seen = np.isfinite(slow)
    np.testing.assert_allclose(fast[seen], slow[seen], rtol=1e-4, atol=1e-4)


def test_fast_is_exact_on_real_embeddings():
    domain = load_xd8()["aircraft"]
    chosen = np.concatenate([np.flatnonzero(domain.train_y == label)[: 2 + label % 14] for label in range(12)])
    model = HyCal(fusion="image").fit(domain.train_x[chosen], domain.train_y[chosen])
    fast, slow = leave_one_out(model), one_by_one(model)
    np.testing.assert_allclose(fast.scores, slow, atol=1e-4 * np.abs(slow).max())
    assert (fast.predicted == slow.argmax(axis=1)).all() and 0.2 < fast.right.mean() < 1


def test_any_method_and_one_class():
    stream = Stream.synthetic(3, shots=SHOTS, width=8)
    model = learn(NCM(), stream.steps)
    done = []
    left = leave_one_out(model, watch=lambda number, total: done.append((number, total)))
    np.testing.assert_array_equal(left.scores, one_by_one(model))
    assert done[-1] == (64, 64) and np.isneginf(left.scores).sum() == 2
    with pytest.raises(HyCalError, match="two classes"):
        leave_one_out(NCM().fit([[1, 0]], ["a"]))
