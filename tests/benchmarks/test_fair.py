"""`python -m benchmarks.fair` on pixels, which need no data of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import fair
from hycal.bench.methods import parse_methods
from tests.support.data import needs
from tools.tables import printed_tables


def test_pixels_are_drawn_by_seed_and_tested_in_the_end() -> None:
    parts = fair.TABLES["pixels"][1]()
    assert list(parts) == ["5 shots", "10 shots", "30 shots"]
    setting, domains = parts["30 shots"]
    assert setting.seeds == (0, 1, 42, 1993)
    assert setting.tests == "last-step"
    assert len(domains["digits"].test_y) == 1000
    assert np.bincount(domains["digits"].train_y).min() >= 30


def test_what_cannot_differ_or_be_tuned_is_not_run() -> None:
    variants = parse_methods("NCM NCM+tuned NCM+one-domain")
    one, _ = fair.TABLES["pixels"][1]()["5 shots"]
    several, _ = fair.xd8()["balanced"]
    assert [cell.variant.label for cell in fair.cells(one, variants, [0])] == ["NCM", "NCM+tuned"]
    assert len(fair.cells(several, variants, [0])) == 3


def test_xd8_has_the_images_of_the_benchmark() -> None:
    setting, _ = fair.xd8()["high-scale"]
    assert (setting.name, setting.like) == ("fair-xd8-high-scale", "xd8-high-scale")


@needs("clip-vitb32")
def test_cars_have_the_text_of_each_class_and_five_domains_have_none() -> None:
    parts = fair.TABLES["cars"][1]()
    cars = parts["1 shot"][1]["cars"]
    assert cars.text is not None
    assert np.mean((cars.test_x @ cars.text.T).argmax(axis=1) == cars.test_y) == pytest.approx(0.589, abs=0.001)
    assert fair.cells(parts["1 shot"][0], parse_methods("GDA+tuned"), [0]) == []
    setting, domains = fair.five()["cross-scale"]
    assert all(domain.text is None for domain in domains.values())
    shots = {domain.name: domain.shots_for(42) for domain in setting.domains}
    assert {name: (min(counts), max(counts)) for name, counts in shots.items()} == {
        "aircraft": (5, 16),
        "dtd": (5, 24),
        "flowers": (5, 16),
        "cars": (5, 16),
        "sun397": (5, 8),
    }


def test_the_command_prints_tables_and_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--only", "pixels", "--methods", "HierarchicalHyCal NCM", "--seeds", "0", "1", "--jobs", "1"]
    monkeypatch.setattr(sys, "argv", ["fair", *options, "--out", str(tmp_path)])
    fair.main()
    first = capsys.readouterr()
    assert "| NCM | no |" in first.out
    lines = {line.split(" | ")[0]: line for line in first.out.splitlines() if line.startswith("| ")}
    assert lines["| best of the others"].count(" NCM |") == 3
    leads = [cell for place, cell in enumerate(lines["| NCM"].split(" | ")[2:]) if place % 3 == 1]
    assert lines["| lead of HierarchicalHyCal over it"].strip("| ").split(" | ")[1:] == leads
    assert "12 of 12 runs" in first.err
    fair.main()
    second = capsys.readouterr()
    assert second.out == first.out
    assert second.err == "pixels: 12 of 12 runs\n"
    kept = [table.columns for _, table in printed_tables(second.out)]
    assert [columns[:2] for columns in kept] == [["method", "5 shots: Last"], ["method", "Domains"]]


def test_leads_need_the_method_that_they_are_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["fair", "--only", "pixels", "--methods", "NCM"])
    with pytest.raises(SystemExit):
        fair.main()
