"""The algebra of class samples, to the byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hycal.errors import HyCalError
from hycal.state.samples import ClassSamples
from hycal.validation import unit_rows


def rows(seed, count, width=5):
    return unit_rows(np.random.default_rng(seed).normal(size=(count, width)))


@given(st.integers(0, 1000), st.integers(1, 8), st.integers(1, 8))
def test_any_path_leads_to_the_same_bytes(seed, first, second):
    a, b = rows(seed, first), rows(seed + 1, second)
    together = ClassSamples.of(np.concatenate([a, b]))
    for path in (
        ClassSamples.of(a).add(b),
        ClassSamples.of(b[::-1]).add(ClassSamples.of(a).rows),
        together.add(b).remove(b),
    ):
        assert path.rows.tobytes() == together.rows.tobytes()


def test_duplicates_are_counted_and_removed_one_by_one():
    a = rows(0, 1)
    twice = ClassSamples.of(np.concatenate([a, a]))
    assert twice.count == 2
    assert twice.remove(a).count == 1
    with pytest.raises(HyCalError, match="1 of 3"):
        twice.remove(np.concatenate([a, a, a]))
