"""A bank with some members changed against one that is built of the same members at once."""

from __future__ import annotations

import numpy as np
import pytest

from hycal.algebra.bank import GaussianBank
from hycal.algebra.fusion import FUSIONS
from hycal.algebra.gaussians import GaussianOptions
from hycal.algebra.patched_bank import PatchedBank, bank_of
from hycal.state.records import ClassRecord
from hycal.state.samples import ClassSamples

WIDTH, CLASSES = 64, 600
RNG = np.random.default_rng(7)


def unit(*options):
    rows = RNG.normal(size=options)
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def record(count):
    return ClassRecord(ClassSamples.of(unit(count, WIDTH)), "", unit(WIDTH))


QUERIES = unit(9, WIDTH)
MEMBERS = [record(int(count)) for count in RNG.integers(1, 20, CLASSES)]


def by_column(bank):
    found = [np.empty((CLASSES + 20, len(QUERIES)), np.float32)[: len(bank.members)] for _ in range(2)]
    for target, part in zip(found, bank.evaluate(QUERIES), strict=True):
        target[bank.order] = part
    return found


def check(bank, members):
    assert [bank.members[row] for row in np.argsort(bank.order)] == members
    assert bank.counts.tolist() == [member.count for member in bank.members]
    plain = GaussianBank.build(members, bank.options)
    for one, other in zip(by_column(bank), by_column(plain), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)
    for one, other in zip(by_column(bank.whole), by_column(plain), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(params=sorted(FUSIONS))
def options(request):
    return GaussianOptions(FUSIONS[request.param], 0.9, 0.1)


def test_changed_added_and_forgotten_members(options):
    base = GaussianBank.build(MEMBERS, options)
    changed = [*MEMBERS]
    changed[3], changed[200] = record(4), record(25)
    one = bank_of(changed, options, base)
    assert isinstance(one, PatchedBank)
    assert one.base is base
    check(one, changed)
    more = [record(1), *changed, record(3)]  # every column moves
    more[4] = record(5)
    two = bank_of(more, options, one)
    assert isinstance(two, PatchedBank)
    assert two.base is base
    check(two, more)
    check(bank_of(more[1:], options, two), more[1:])  # a class that only the patch had is gone
    fewer = [member for number, member in enumerate(more) if number != 100]
    check(bank_of(fewer, options, two), fewer)  # one of the base is gone; another stands in its place


def test_a_bank_is_built_anew_where_that_is_better(options):
    base = GaussianBank.build(MEMBERS, options)
    assert isinstance(bank_of(MEMBERS[1:], options, base), GaussianBank)  # nothing to stand in its place
    many = [record(2) for _ in range(CLASSES // 4)] + MEMBERS[CLASSES // 4 :]
    assert isinstance(bank_of(many, options, base), GaussianBank)
    small = MEMBERS[:40]
    assert isinstance(bank_of([record(2), *small[1:]], options, GaussianBank.build(small, options)), GaussianBank)
    other = GaussianOptions(options.fusion, 0.5, 0.5)
    assert isinstance(bank_of([record(2), *MEMBERS[1:]], other, base), GaussianBank)
