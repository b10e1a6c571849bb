from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hycal import METHODS
from hycal.algebra.cost import Addition
from hycal.base import IncrementalClassifier
from hycal.bench.efficiency import CASE, DENSE, count, measure, read_efficiency, stored, write_efficiency

SMALL = Addition(classes=12, added=2, shots=4, width=16)


def test_counts_reproduce_the_papers_numbers_for_dense_matrices() -> None:
    assert round(count(DENSE, CASE) / 1e9, 1) == 5.4
    assert round(stored(DENSE, CASE) / 2**20) == 301


def test_every_method_of_the_package_is_counted_and_measured(tmp_path: Path) -> None:
    measured = dict(measure(SMALL))
    assert list(measured) == list(METHODS)
    for method, cost in measured.items():
        assert count(method, CASE) >= 0.0
        assert cost.state_bytes == stored(method, SMALL)
    write_efficiency(tmp_path, measured)
    assert read_efficiency(tmp_path)["NCM"].state_bytes == measured["NCM"].state_bytes
    assert read_efficiency(tmp_path / "nowhere") == {}


@pytest.mark.parametrize("shots", [2, 10, 50])
def test_a_class_costs_far_less_without_its_matrix(shots: int) -> None:
    case = Addition(shots=shots)
    assert count("HyCal", case) < 0.05 * count(DENSE, case)
    assert stored("HyCal", case) < 0.25 * stored(DENSE, case)


def test_a_method_that_does_not_state_its_cost_has_none() -> None:
    assert np.isnan(IncrementalClassifier.operations(CASE))


def test_only_methods_that_store_their_images_cost_nothing() -> None:
    assert {method for method in METHODS if count(method, CASE) == 0.0} == {"ZeroShot", "TipAdapter"}
