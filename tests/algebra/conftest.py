"""A small hierarchy: three domains of two or three classes."""

from __future__ import annotations

import numpy as np
import pytest

from hycal.algebra.hierarchy_fit import fit_hierarchy
from hycal.state.records import Records
from hycal.state.selection import Selection
from hycal.state.steps import Step
from hycal.validation import unit_rows

WIDTH = 8


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(11)
    records = Records({})
    for domain, counts in {"a": (9, 4, 6), "b": (5, 12), "c": (7, 3, 3)}.items():
        middle = rng.normal(size=WIDTH)
        samples = {
            f"{domain}{number}": unit_rows(middle + rng.normal(size=WIDTH) + 0.5 * rng.normal(size=(count, WIDTH)))
            for number, count in enumerate(counts)
        }
        records = records.learn(Step(samples, domain, {}))
    return records


@pytest.fixture(scope="module")
def hierarchy(records):
    return fit_hierarchy(records, strength=1.0, ridge=0.5)


@pytest.fixture(scope="module")
def samples(records):
    return Selection.of(records)
