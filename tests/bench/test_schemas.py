"""The JSON schemas of settings and results describe what hycal reads and writes, and refuse the rest."""

from __future__ import annotations

import json
import tomllib
from copy import deepcopy
from importlib import resources
from pathlib import Path

import pytest

from hycal.bench.settings import list_settings
from tests.bench.test_settings import SMALL
from tests.support.schemas import schema

SETTING, RESULT = schema("setting"), schema("result")


@pytest.mark.parametrize("name", list_settings())
def test_every_setting_of_the_package_fits(name: str) -> None:
    text = (resources.files("hycal.bench") / "settings" / f"{name}.toml").read_text(encoding="utf-8")
    SETTING.validate(tomllib.loads(text))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('protocol = "CIL"', 'protocol = "TIL"'),
        ('short = "all-available"', ""),
        ("seeds = [0]", "seeds = [0, 0]"),
        ("seeds = [0]", "seeds = [0]\ncolour = 1"),
        ("shots = 3", "shots = 0"),
        ("shots = 3", "shots = true"),
        ("0 = [1, 2]", "x = [1, 2]"),
        ("shots = 3", "shots = 3\nsessions = 2\nbase = { classes = 1 }"),
        ("shots = 3", "shots = 3\nbase = { classes = 1, shots = 9 }"),
        ('name = "a"', ""),
    ],
)
def test_a_wrong_setting_is_refused(old: str, new: str) -> None:
    SETTING.validate(tomllib.loads(SMALL))
    assert not SETTING.is_valid(tomllib.loads(SMALL.replace(old, new)))


def test_a_setting_may_take_everything_from_another() -> None:
    SETTING.validate({"like": "xd8-high-scale"})


def test_results_fit_and_others_are_refused(results: Path) -> None:
    cells = [json.loads(path.read_bytes()) for path in sorted((results / "cells").rglob("*.json"))]
    for cell in cells:
        RESULT.validate(cell)
    for fault in (
        lambda cell: cell.pop("correct"),
        lambda cell: cell.update(calibration_error=-1.0),
        lambda cell: cell.update(right=["xyz"]),
        lambda cell: cell["manifest"].update(format=3),
        lambda cell: cell["manifest"].update(seconds=2.0),
    ):
        fault(broken := deepcopy(cells[0]))
        assert not RESULT.is_valid(broken)
