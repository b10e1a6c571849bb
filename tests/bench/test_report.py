from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hycal import HyCalError
from hycal.bench.cells import CellResult
from hycal.bench.report.collect import Group, Value, collect, column_of
from hycal.bench.report.figures import FIGURES
from hycal.bench.report.page import page, write_report
from hycal.bench.report.tables import csv_rows, html_table, latex, markdown, tables_of
from hycal.bench.runner import grid, run_grid
from hycal.bench.variants import parse_variant
from hycal.commands.bench import app
from tests.bench.small import small_domains, small_setting, tree, write_small

METHODS = ("HyCal", "NCM", "HyCal[metric=cosine]")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("results")
    variants = [parse_variant(label) for label in METHODS]
    cells = grid([small_setting()], variants, orders=["default", "back"])
    run_grid(cells, {"small": small_domains()}, out)
    return out


def made_up(setting: str, method: str, last: float) -> Group:
    """A group whose accuracies are known: two methods over the domains of the paper, one seed."""
    names = ("aircraft", "artbench", "dtd", "eurosat", "galaxy", "mnist", "organ", "flowers")
    runs = {}
    for label, value in ((method, last), ("NCM", last - 5.0)):
        A = np.where(np.tri(8, dtype=bool), value, np.nan)
        run = CellResult(
            setting=setting,
            order="default",
            protocol="CIL",
            method=label,
            seed=0,
            domains=names,
            samples=(500,) * 8,
            A=A,
            Z=np.full(8, np.nan),
            classes={f"{name}/x": (5, value) for name in names},
            shortages=0,
            nbytes=0,
        )
        runs[label] = (run,)
    return Group(setting, "default", "CIL", runs)


def test_groups_are_settings_and_orders_with_all_seeds(results: Path) -> None:
    groups = collect(results)
    assert [group.name for group in groups] == ["small", "small@back"]
    assert all(tuple(group.runs) == ("HyCal", "HyCal[metric=cosine]", "NCM") for group in groups)
    assert [run.seed for run in groups[0].runs["NCM"]] == [0, 1, 2]
    value = groups[0].value("NCM", "last")
    numbers = [column_of(run, "last") for run in groups[0].runs["NCM"]]
    assert value.mean == pytest.approx(np.mean(numbers))
    assert value.interval == pytest.approx(4.303 * np.std(numbers, ddof=1) / np.sqrt(3), rel=1e-3)


def test_published_numbers_stand_beside_ours_with_their_errors() -> None:
    group = made_up("balanced", "RanPAC:hycal-paper", 60.0)
    value = group.value("RanPAC:hycal-paper", "last")
    assert value.published is not None
    assert value.published.value == 67.64
    summary = tables_of(group)[0]
    assert "The mean of the printed row is 66.66, not 67.64." in summary.notes
    for form in (markdown, latex, html_table):
        text = form(summary)
        assert "67.64" in text
        assert "66.66" in text
        assert "CIL" in text


def test_other_settings_have_no_published_number() -> None:
    assert made_up("xd8-balanced", "RanPAC", 60.0).value("RanPAC", "last").published is None


def test_best_is_bold_second_underlined_and_missing_stays_missing() -> None:
    table = tables_of(made_up("xd8-balanced", "HyCal", 60.0))[0]
    cells = {(name, column): v for name, row in table.rows for column, v in zip(table.columns, row, strict=True)}
    assert cells["HyCal", "last"].rank == "best"
    assert cells["NCM", "last"].rank == "second"
    assert cells["HyCal", "s_cde"].rank == ""
    text = markdown(table)
    assert "**60.00**" in text
    assert "<u>55.00</u>" in text
    assert "| – |" in text
    assert isinstance(cells["HyCal", "last"], Value)


def test_csv_has_every_number_once(results: Path) -> None:
    rows = list(csv.DictReader(csv_rows(collect(results)).splitlines()))
    keys = [(row["setting"], row["order"], row["method"], row["column"]) for row in rows]
    assert len(set(keys)) == len(keys)
    assert {row["seeds"] for row in rows} == {"3"}
    assert any(row["column"] == "s_cde" and row["mean"] for row in rows)


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_svg_in_the_pages_ink(results: Path, name: str) -> None:
    svg = FIGURES[name](collect(results)[0])
    root = ET.fromstring(svg)
    assert root.tag.endswith("svg")
    assert "currentColor" in svg
    assert "#010203" not in svg


def test_the_page_needs_nothing_beside_it_and_has_unique_ids(results: Path) -> None:
    text = page(collect(results))
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r'(src|href)="(?!#)[^"]*//', re.sub(r'xmlns(:\w+)?="[^"]*"', "", text))
    clips = re.findall(r'<clipPath id="([^"]+)"', text)
    assert clips
    assert len(set(clips)) == len(clips)


def test_two_reports_are_the_same_bytes(results: Path) -> None:
    write_report(results)
    before = tree(results)
    assert {"report.md", "report.tex", "report.csv", "report.html"} <= set(before)
    write_report(results)
    assert tree(results) == before


def test_a_folder_without_results_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(HyCalError, match="hycal bench run"):
        collect(tmp_path)


def test_commands_run_and_report(tmp_path: Path) -> None:
    setting, embeddings = write_small(tmp_path, text=False)
    runner, out = CliRunner(), tmp_path / "out"
    options = ["--methods", "NCM ZeroShot", "--seeds", "0", "--embeddings", str(embeddings), "--jobs", "1"]
    ran = runner.invoke(app, ["run", str(setting), "--out", str(out), *options])
    assert ran.exit_code == 0, ran.output
    assert "1 runs" in ran.output
    assert "ZeroShot needs text embeddings" in ran.output
    assert "3 classes have fewer images than shots" in ran.output
    reported = runner.invoke(app, ["report", str(out)])
    assert reported.exit_code == 0, reported.output
    assert "report.html" in reported.output.replace("\n", "")
    listed = runner.invoke(app, ["list"])
    assert "methods: HyCal" in listed.output
    failed = runner.invoke(app, ["run", "nothing", "--out", str(out)])
    assert failed.exit_code == 1
