"""`hycal bench`: settings and methods are listed, run and reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hycal import METHODS
from hycal.bench.settings import list_settings, load_setting
from hycal.datasets import load_xd8
from tests.support.commands import hycal, hycal_error
from tests.support.data import ROOT
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
    assert "1 run in" in ran
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


def example_of_a_method() -> str:
    """The module in the guide to methods of one's own."""
    guide = ROOT / "docs" / "how-to" / "method.md"
    return guide.read_text(encoding="utf-8").split("```python\n# mine.py\n")[1].split("```")[0]


def write_features(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (train, train_y), (test, test_y) = load_xd8()[name].train, load_xd8()[name].test
        split = ["train"] * len(train) + ["test"] * len(test)
        rows, labels = np.concatenate([train, test]), np.concatenate([train_y, test_y])
        np.savez(folder / f"{name}.npz", embeddings=rows, labels=labels, split=split)
    return folder


def test_features_of_any_tool_and_a_method_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_method.py").write_text(example_of_a_method())
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    write_features(tmp_path / "clip", "digit", "texture")
    options = ("--shots", "1 5", "--methods", "NCM my_method:MyMethod", "--seeds", "0 1", "--out", "out", "--jobs", "1")
    ran = hycal("bench", "run", "--features", "clip", *options, "--latex")
    assert "8 runs in" in ran
    for table in ("clip-1-shot (CIL)", "clip-5-shot (CIL)"):
        assert table in ran
    assert r"my\_method:MyMethod & " in ran.replace("{", "").replace("}", "") and ran.count(r" \\") == 4
    assert "0 runs in" in hycal("bench", "run", "--features", "clip", *options)
    assert "my_method:MyMethod" in hycal("bench", "report", "out")
    assert "method nowhere:Nothing was asked for, but" in hycal_error(
        "bench", "run", "--features", "clip", "--methods", "nowhere:Nothing", "--out", "out"
    )


def test_a_setting_of_the_paper_has_the_published_numbers_beside_ours(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for domain in load_setting("two-domain-balanced").domains:
        means, labels = rng.normal(size=(domain.classes, 16)), np.repeat(np.arange(domain.classes), 6)
        rows = means[labels] + 0.3 * rng.normal(size=(len(labels), 16))
        np.savez(tmp_path / f"{domain.name}.npz", features=rows, labels=labels)
    options = ("--methods", "HyCal", "--seeds", "0", "--features", tmp_path, "--jobs", "1", "--out", tmp_path / "out")
    ran = hycal("bench", "run", "two-domain-balanced", *options, "--latex")
    assert "(paper " in ran
    row = next(line for line in ran.splitlines() if line.startswith("HyCal & "))
    assert "(paper" in row and row.endswith(r"\\")


def test_what_does_not_go_together_is_said(tmp_path: Path) -> None:
    assert "Nothing to run" in hycal_error("bench", "run", "--out", tmp_path)
    said = hycal_error("bench", "run", "xd8-balanced", "--shots", "5", "--out", tmp_path)
    assert "--shots is for features without a setting" in said
    said = hycal_error(
        "bench", "run", "--features", write_features(tmp_path / "f", "digit"), "--shots", "0", "--out", "x"
    )
    assert "--shots is '0'; expected whole numbers" in said
