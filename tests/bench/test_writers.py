"""The files of a report: CSV, LaTeX, the page and its figures."""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from hycal import HyCalError
from hycal.bench.report.blocks import FigureBlock
from hycal.bench.report.definitions import DEFINITIONS
from hycal.bench.report.results import COLUMNS, collect
from hycal.bench.report.sections import all_sections
from hycal.bench.report.writers import render, write_report
from tests.support.files import tree


def test_csv_has_every_number_once(results: Path) -> None:
    rows = list(csv.DictReader(render("csv", all_sections(collect(results))).splitlines()))
    keys = [(row["table"], row["setting"], row["order"], row["method"], row["column"]) for row in rows]
    assert len(set(keys)) == len(keys)
    small = [row for row in rows if row["setting"] == "small"]
    assert {row["seeds"] for row in small if row["mean"] and row["method"] != "zero-shot, all names"} == {"3"}
    assert any(row["column"] == "s_cde" and row["mean"] for row in small)
    assert any(row["table"] == "Adding 10 classes" and row["method"] == "HyCal" for row in rows)


def test_figures_are_svg_in_the_pages_ink_and_show_every_method(results: Path) -> None:
    sections = all_sections(collect(results))
    titles = [b.title for section in sections for b in section.blocks if isinstance(b, FigureBlock)]
    wanted = ("training images", "accuracy after each step", "accuracy on each domain after each step")
    wanted += ("forgetting after each step", "accuracy matrices")
    wanted += ("accuracy of a class by its shots", "α and β", "λ and γ", "relation and agreement")
    wanted += ("class means among test images", "images classified into another domain", "pull, sample share, entropy")
    assert titles == ["Last accuracy of every method in every setting", *(f"small: {title}" for title in wanted)]
    drawings = re.findall(r"<svg.*?</svg>", (results / "report.html").read_text(encoding="utf-8"), re.DOTALL)
    assert len(drawings) == len(titles)
    for svg in drawings:
        assert ET.fromstring(svg).tag.endswith("svg")
        assert "currentColor" in svg
        assert "#010203" not in svg
    for svg in (drawings[0], *drawings[2:6]):
        assert ">HyCal<" in svg
        assert ">NCM<" in svg


def test_the_page_needs_nothing_beside_it_and_has_unique_ids(results: Path) -> None:
    text = (results / "report.html").read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in text
    outside = re.sub(r'xmlns(:\w+)?="[^"]*"', "", text)
    assert not re.search(r'(src|href)="(?!#|data:)[^"]*//', outside)
    ids = re.findall(r'<(?:clipPath|section) id="([^"]+)"', text)
    assert len(ids) > 15
    assert len(set(ids)) == len(ids)


def test_every_form_defines_the_columns(results: Path) -> None:
    assert set(COLUMNS) <= set(DEFINITIONS)
    page, markdown, latex = (
        (results / name).read_text(encoding="utf-8") for name in ("report.html", "report.md", "report.tex")
    )
    meaning = "Harmonic mean of S_adapt and S_last."
    assert f'<abbr title="{meaning}" tabindex="0">S_CDE</abbr></th>' in page
    assert f"<dt>S_CDE</dt><dd>{meaning}</dd>" in page
    assert f"- **S_CDE**: {meaning}\n" in markdown
    assert r"\item[{S\_CDE}] Harmonic mean of S\_adapt and S\_last." in latex


def test_the_page_opens_with_findings_ends_with_commands_and_fits_a_phone(results: Path) -> None:
    page = (results / "report.html").read_text(encoding="utf-8")
    anchors = re.findall(r'<section id="([^"]+)"', page)
    assert anchors[0] == "findings"
    assert anchors[-2:] == ["definitions", "not-run"]
    assert 'class="todo"' not in page[: page.index('<section id="not-run"')]
    assert ".drawing svg { display: block; max-width: 100%; height: auto; }" in page
    assert "min-width" not in page.replace("@media (min-width", "")


def test_two_reports_are_the_same_bytes(results: Path) -> None:
    before = tree(results)
    assert {"report.md", "report.tex", "report.csv", "report.html"} <= set(before)
    write_report(collect(results), results)
    assert tree(results) == before


@pytest.mark.parametrize("name", ["report.md", "report.tex", "report.csv", "report.html"])
def test_a_report_replaces_reports_only(results: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("my own notes")
    with pytest.raises(HyCalError, match="not replaced"):
        write_report(collect(results), tmp_path)
    assert tree(tmp_path) == {name: b"my own notes"}


def test_latex_needs_no_letter_beyond_ascii(results: Path) -> None:
    text = (results / "report.tex").read_text(encoding="utf-8")
    assert r"$\rho$" in text
    assert text.isascii()


def test_a_folder_without_results_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(HyCalError, match="hycal bench run"):
        collect(tmp_path)
