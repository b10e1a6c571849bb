"""S_adapt, S_last and S_CDE of the printed tables against what the printed rows give.

A_tt is not printed; the Average row stands for it, which is right to half a point where nothing is wrong.
"""

from __future__ import annotations

import numpy as np
import pytest

from hycal.bench import metrics
from hycal.bench.published import find_published, published
from hycal.bench.settings import load_setting

SETTINGS = ("balanced", "cross-scale", "high-scale")


def printed_row(setting: str, method: str, part: str) -> np.ndarray:
    found = {c.column: c.value for c in published(setting) if (c.setting, c.method) == (setting, method)}
    return np.array([found[f"{part}:{domain.name}"] for domain in load_setting(setting).domains])


def weights(setting: str) -> np.ndarray:
    loaded = load_setting(setting)
    by_seed = [[sum(domain.shots_for(seed)) for domain in loaded.domains] for seed in loaded.seeds]
    return np.mean([metrics.scarcity_weights(counts) for counts in by_seed], axis=0)


def expected_s_adapt(setting: str, method: str, *, seeds_with_zero_shot: float = 1.0) -> float:
    zero_shot = seeds_with_zero_shot * printed_row(setting, "ZeroShot", "zero-shot")
    return float(weights(setting) @ (zero_shot + printed_row(setting, method, "average")) / 2)


def printed(setting: str, method: str, column: str) -> tuple[float, float, str]:
    cell = find_published(setting, method, column)
    assert cell is not None
    return cell.value, cell.interval, cell.error


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("method", ["HyCal", "RanPAC", "PrimalRAIL", "FeCAM"])
def test_s_adapt_follows_from_the_printed_rows_unless_marked(setting: str, method: str) -> None:
    value, _, error = printed(setting, method, "s_adapt")
    assert (abs(expected_s_adapt(setting, method) - value) < 0.55) == (not error)


@pytest.mark.parametrize("setting", ["balanced", "high-scale"])
def test_ranpac_fits_one_of_four_seeds_with_both_scores_swapped(setting: str) -> None:
    adapt = expected_s_adapt(setting, "RanPAC")
    last = float(weights(setting) @ printed_row(setting, "RanPAC", "last"))
    assert printed(setting, "RanPAC", "s_adapt")[0] == pytest.approx((3 * adapt + last) / 4, abs=0.5)
    assert printed(setting, "RanPAC", "s_last")[0] == pytest.approx((3 * last + adapt) / 4, abs=1.0)
    for column in ("s_adapt", "s_last"):  # wide, while their harmonic mean, which a swap leaves as it is, is not
        assert printed(setting, "RanPAC", column)[1] > 7 * printed(setting, "RanPAC", "s_cde")[1]


@pytest.mark.parametrize(
    ("setting", "with_zero_shot"), [("balanced", 0.25), ("high-scale", 0.25), ("cross-scale", 0.0)]
)
def test_fecam_fits_seeds_without_zero_shot_accuracy(setting: str, with_zero_shot: float) -> None:
    fitted = expected_s_adapt(setting, "FeCAM", seeds_with_zero_shot=with_zero_shot)
    assert printed(setting, "FeCAM", "s_adapt")[0] == pytest.approx(fitted, abs=0.5)


def fscil_s_cde(shots: int, method: str) -> tuple[float, float, str]:
    """The printed S_CDE, what the printed Last and Average accuracy give, and the note on it."""
    setting = load_setting(f"fscil-{shots}")
    shares = metrics.scarcity_weights([sum(domain.shots_for(0)) for domain in setting.domains])
    zero_shot = dict(
        zip(
            [d.name for d in load_setting("balanced").domains],
            printed_row("balanced", "ZeroShot", "zero-shot"),
            strict=True,
        )
    )
    known = float(shares @ [zero_shot[domain.name] for domain in setting.domains])
    assert known == pytest.approx(34.3, abs=0.05)
    last, average = (printed(setting.name, method, column)[0] for column in ("last", "average"))
    value, _, error = printed(setting.name, method, "s_cde")
    return value, metrics.s_cde((known + max(last, average)) / 2, last), error


@pytest.mark.parametrize("shots", [5, 10, 15, 20])
def test_s_cde_of_hycal_grows_with_the_shots_but_for_the_cell_that_is_marked(shots: int) -> None:
    value, expected, error = fscil_s_cde(shots, "HyCal")
    assert (abs(value - expected) < 2.5) == (not error)


def test_s_cde_of_klda_with_20_shots_is_below_that_with_15() -> None:
    value, expected, error = fscil_s_cde(20, "KLDA")
    assert expected - value > 6.0
    assert error
    assert not fscil_s_cde(15, "KLDA")[2]
