"""`hycal bench`: settings and methods are listed, run and reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from hycal import METHODS
from hycal.bench.settings import list_settings
from tests.support.commands import hycal, hycal_error
from tests.support.small_benchmark import write_small


def run_small(folder: Path) -> str:
    """Run a small setting without text embeddings; return what `hycal bench run` prints."""
    setting, embeddings = write_small(folder, text=False)
    options = ("--methods", "NCM ZeroShot", "--seeds", "0", "--embeddings", embeddings, "--jobs", "1")
    return hycal("bench", "run", setting, "--out", folder / "out", *options)


def test_list_shows_every_setting_and_every_method() -> None:
    listed = hycal("bench", "list")
    assert "methods: HyCal" in listed
    assert all(name in listed for name in (*list_settings(), *METHODS))


def test_run_says_what_ran_what_could_not_and_what_was_short(tmp_path: Path) -> None:
    ran = run_small(tmp_path)
    assert "1 runs" in ran
    assert "ZeroShot needs text embeddings" in ran
    assert "3 classes have fewer images than shots" in ran


def test_what_has_a_result_is_not_run_again(tmp_path: Path) -> None:
    run_small(tmp_path)
    assert run_small(tmp_path).startswith("not run ")
    assert "0 runs in" in run_small(tmp_path)


def test_report_prints_a_table_and_the_files_that_it_wrote(tmp_path: Path) -> None:
    run_small(tmp_path)
    reported = hycal("bench", "report", tmp_path / "out")
    assert "ECE" in reported
    assert "report.html" in reported.replace("\n", "")


def test_a_setting_that_is_not_there(tmp_path: Path) -> None:
    assert "'nothing'" in hycal_error("bench", "run", "nothing", "--out", tmp_path)


@pytest.mark.parametrize("seeds", ["x", "-1", "0 1.5"])
def test_seeds_that_are_no_numbers(tmp_path: Path, seeds: str) -> None:
    said = hycal_error("bench", "run", "xd8-balanced", f"--seeds={seeds}", "--out", tmp_path)
    assert "expected whole numbers" in said


def test_no_order_is_not_a_run_of_nothing(tmp_path: Path) -> None:
    assert "--orders names no order" in hycal_error("bench", "run", "xd8-balanced", "--orders", "", "--out", tmp_path)


def test_practice_runs_each_seed_once_and_the_report_shows_it(tmp_path: Path) -> None:
    setting, embeddings = write_small(tmp_path, text=False)
    options = ("--seeds", "1", "--embeddings", embeddings, "--out", tmp_path / "out")
    assert hycal("bench", "practice", setting, *options) == "small, seed 1: run\n"
    assert hycal("bench", "practice", setting, *options) == "small, seed 1: known already\n"
    run_small(tmp_path)
    hycal("bench", "report", tmp_path / "out")
    assert "logistic regression" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
