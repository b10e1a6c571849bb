"""The JSON schemas of settings and results describe what hycal reads and writes, and refuse the rest."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from copy import deepcopy
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from hycal.bench.cells import read_cell
from hycal.bench.settings import list_settings
from hycal.errors import HyCalError
from tests.bench.test_settings import SMALL
from tests.support.schemas import schema

Fault = Callable[[dict[str, Any]], object]
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
        lambda cell: cell["manifest"].update(shortages=[{"domain": "a"}]),
        lambda cell: cell["gravity"]["drifts"][0].update(alone=1.5),
        lambda cell: cell["gravity"].update(flow=[[-1]]),
    ):
        fault(broken := deepcopy(cells[0]))
        assert not RESULT.is_valid(broken)


@pytest.mark.parametrize(
    "fault",
    [
        lambda cell: cell.update(gravity={}),
        lambda cell: cell["gravity"].pop("flow"),
        lambda cell: cell["gravity"].update(classes=["many"]),
        lambda cell: cell["gravity"]["varieties"][0].pop("entropy"),
        lambda cell: cell["gravity"]["drifts"][0].update(seconds=2.0),
        lambda cell: cell["classes"].update(a=[1, 2]),
        lambda cell: cell.pop("state_bytes"),
        lambda cell: cell["manifest"].pop("samples"),
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(results: Path, tmp_path: Path, fault: Fault) -> None:
    cells = [json.loads(path.read_bytes()) for path in sorted((results / "cells").rglob("*.json"))]
    cell, path = next(cell for cell in cells if cell["gravity"]), tmp_path / "cell.json"
    path.write_text(json.dumps(cell))
    assert RESULT.is_valid(cell) and read_cell(path).gravity
    fault(cell)
    path.write_text(json.dumps(cell))
    assert not RESULT.is_valid(cell)
    with pytest.raises(HyCalError, match="is not a result"):
        read_cell(path)
