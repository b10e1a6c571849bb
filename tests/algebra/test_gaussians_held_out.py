"""A class without each of its samples in turn: the two corrections give what building every such class gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hycal import HyCal
from hycal.algebra.bank import GaussianBank
from hycal.algebra.gaussians_held_out import own_without_each
from hycal.data import load_xd8
from hycal.state.records import ClassRecord


@pytest.fixture(scope="module")
def model():
    """Classes of 2 to 15 real images."""
    domain = load_xd8()["aircraft"]
    chosen = np.concatenate([np.flatnonzero(domain.train_y == label)[: 2 + label] for label in range(14)])
    return HyCal(fusion="image").fit(domain.train_x[chosen], domain.train_y[chosen])


@pytest.mark.parametrize("centre", ["direction", "mean"])
def test_each_class_rebuilt_without_each_sample(model, centre):
    current = model.snapshot()
    members, options = current.records.ordered, replace(current.value.bank.options, centre=centre)
    cosines, closeness = own_without_each(members, options, wanted=np.arange(len(members)))
    expected = []
    for member in members:
        for row in member.samples.rows:
            fewer = ClassRecord(member.samples.remove(row[None]), member.domain)
            expected.append([part[0, 0] for part in GaussianBank.build([fewer], options).evaluate(row[None])])
    expected = np.array(expected)
    np.testing.assert_allclose(cosines, expected[:, 0], atol=1e-6)
    np.testing.assert_allclose(closeness, expected[:, 1], atol=1e-5)


def test_only_what_is_wanted(model):
    current = model.snapshot()
    members = current.records.ordered
    cosines, _ = own_without_each(members, current.value.bank.options, wanted=np.array([3]))
    first = sum(member.count for member in members[:3])
    assert np.flatnonzero(cosines).tolist() == list(range(first, first + members[3].count))
