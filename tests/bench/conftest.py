"""A small run with its report, which several files look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from hycal.bench.methods import parse_methods
from hycal.bench.report.results import collect
from hycal.bench.report.writers import write_report
from hycal.bench.runner import grid, run_grid
from tests.support.small_benchmark import small_domains, small_setting

METHODS = "HyCal NCM study:metrics study:alpha-beta study:lambda-gamma"


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("results")
    cells = grid([small_setting()], parse_methods(METHODS)) + grid(
        [small_setting()], parse_methods("NCM"), orders=["back"]
    )
    run_grid(cells, {"small": small_domains()}, out)
    write_report(collect(out), out)
    return out
