from __future__ import annotations

import numpy as np
import pytest

from hycal import HyCalError
from hycal.bench import metrics

NAN = np.nan
LOWER = np.array([[80.0, NAN, NAN], [70.0, 60.0, NAN], [76.0, 50.0, 90.0]])


def test_average_weighs_steps_equally_not_cells() -> None:
    assert metrics.average(LOWER) == pytest.approx((80 + 65 + 72) / 3)


@pytest.mark.parametrize("cell", [(0, 0), (1, 0), (2, 1), (2, 2)])
def test_a_missing_cell_makes_what_needs_it_missing(cell: tuple[int, int]) -> None:
    A = LOWER.copy()
    A[cell] = NAN
    assert np.isnan(metrics.average(A))
    assert np.isnan(metrics.average_per_domain(A)[cell[1]])
    assert np.isnan(metrics.last(A)) == (cell[0] == 2)
    assert np.isnan(metrics.worst_forgetting(A)[cell[1]])


def test_what_needs_no_future_domain_ignores_that_they_are_missing() -> None:
    assert np.isfinite(metrics.average(LOWER))
    assert np.isnan(metrics.transfer(LOWER))
    assert np.isnan(metrics.average_x_tail(LOWER))


def test_zero_shot_that_is_missing_is_not_zero() -> None:
    adapt = metrics.s_adapt(LOWER, K=[10, 10, 10], Z=[NAN] * 3)
    assert np.isnan(adapt)
    assert np.isnan(metrics.s_cde(adapt, metrics.s_last(LOWER, K=[10, 10, 10])))


def test_equal_domains_weigh_equally() -> None:
    assert metrics.s_last(LOWER, K=[7, 7, 7]) == pytest.approx(metrics.last(LOWER))


def test_interval_of_four_seeds_is_the_papers() -> None:
    runs = [60.0, 61.0, 63.0, 64.0]
    assert metrics.interval(runs) == pytest.approx(3.182 * np.std(runs, ddof=1) / 2, rel=1e-3)
    assert np.isnan(metrics.interval([60.0]))
    assert np.isnan(metrics.interval([60.0, NAN]))


def test_forgetting_counts_only_domains_that_could_lose() -> None:
    assert metrics.forgetting(metrics.final_forgetting(LOWER)) == 7.0
    assert np.isnan(metrics.forgetting([0.0]))


@pytest.mark.parametrize("bad", [[], [1.0, 2.0], [[1.0, 2.0]]])
def test_a_matrix_that_is_none_is_refused(bad: list[float]) -> None:
    with pytest.raises(HyCalError, match="one row and one column per domain"):
        metrics.last(bad)


def test_counts_must_be_positive() -> None:
    with pytest.raises(HyCalError, match="positive"):
        metrics.s_last(LOWER, K=[1, 0, 2])


def test_base_novel_and_their_harmonic_mean_by_hand() -> None:
    assert metrics.base_accuracy(LOWER) == 76.0
    novel = metrics.novel_accuracy(LOWER, asked=[1000, 10, 30])
    assert novel == pytest.approx((10 * 50 + 30 * 90) / 40), "by images, the base session left out"
    assert metrics.harmonic_mean(76.0, novel) == pytest.approx(2 * 76 * 80 / 156)
    assert np.isnan(metrics.novel_accuracy([[70.0]], asked=[5]))
    assert np.isnan(metrics.harmonic_mean(76.0, NAN))


def test_transfer_forwards_and_backwards_by_hand() -> None:
    assert metrics.backward_transfer(LOWER) == pytest.approx(((76 - 80) + (50 - 60)) / 2)
    assert metrics.forward_transfer(LOWER, R=[0.0, 55.0, 93.0]) == pytest.approx(((60 - 55) + (90 - 93)) / 2)
    assert np.isnan(metrics.forward_transfer(LOWER, R=[0.0, NAN, 93.0]))
    assert np.isnan(metrics.forward_transfer([[70.0]], R=[60.0]))
    assert np.isnan(metrics.backward_transfer([[70.0]]))
