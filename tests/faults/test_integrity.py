"""The hostile cases of files that take no time. The others are too slow for every run; their parts have tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.attacks.case import Case
from benchmarks.attacks.integrity import CASES

QUICK = [case for case in CASES if case.number in (5, 6, 9, 15, 16)]


@pytest.mark.parametrize("case", QUICK, ids=[str(case.number) for case in QUICK])
def test_the_promise_is_held(case: Case, tmp_path: Path) -> None:
    held, told = case.attack(tmp_path)
    assert held, f"{case.promise}: {told}"
