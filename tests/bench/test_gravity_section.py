"""Domain Gravity in the benchmark: measured by every run, kept in its file, shown in the report."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hycal.bench.cells import read_cell
from hycal.bench.methods import parse_variant
from hycal.bench.report.results import Group, collect
from hycal.bench.report.sections.gravity import before_and_after, gravities_of, gravity_table
from hycal.bench.report.writers import write_report
from hycal.bench.runner import grid, run_grid
from hycal.gravity import pooled
from hycal.gravity.drawing import draw_flow, draw_pull, drawing, name_points
from tests.support.small_benchmark import small_domains, small_setting


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("results")
    variants = [parse_variant(label) for label in ("HyCal", "SLDA", "NCM")]
    run_grid(grid([small_setting()], variants), {"small": small_domains()}, out)
    run_grid(grid([small_setting("MTIL")], variants[:1], seeds=[0]), {"small": small_domains()}, out)
    return out


def group_of(results: Path, protocol: str = "CIL") -> Group:
    return next(group for group in collect(results).groups if group.protocol == protocol)


def test_every_run_measures_what_its_accuracy_says(results: Path) -> None:
    for runs in group_of(results).runs.values():
        for run in runs:
            assert run.gravity is not None
            assert set(run.gravity.domains) == set(run.domains)
            together = {name: one.together for name, one in zip(run.gravity.domains, run.gravity.drifts, strict=True)}
            assert [100 * together[name] for name in run.domains] == pytest.approx(run.A[-1].tolist())
            assert run.gravity.flow.counts.sum() == 12 * 8


def test_a_told_domain_has_no_flow_and_old_files_stay_readable(results: Path, tmp_path: Path) -> None:
    told = group_of(results, "MTIL")
    assert not gravities_of(told)
    path = next((results / "cells").rglob("default.CIL.NCM.0.json"))
    document = json.loads(path.read_text())
    del document["gravity"]
    (tmp_path / "old.json").write_text(json.dumps(document))
    assert read_cell(tmp_path / "old.json").gravity is None


def test_the_table_is_in_every_form(results: Path) -> None:
    table = gravity_table(group_of(results))
    assert [name for name, _ in table.rows] == ["HyCal", "NCM", "SLDA"]
    names = [column.name for column in table.columns]
    rows = {name: dict(zip(names, values, strict=True)) for name, values in table.rows}
    assert rows["NCM"]["drifted %"].mean == 0.0
    assert rows["SLDA"]["shift"].mean > rows["HyCal"]["shift"].mean
    assert rows["HyCal"]["crossing %"].seeds == 3
    files = write_report(collect(results), results)
    for form in ("markdown", "latex", "html"):
        assert "small: Domain Gravity" in files[form].read_text()
    assert files["html"].read_text().count("<b>small: images classified into another domain") == 1  # not under MTIL


def test_before_is_direction_alone(results: Path) -> None:
    measured = gravities_of(group_of(results))
    assert [one.method for one in before_and_after(measured)] == ["NCM", "HyCal"]
    assert [one.method for one in before_and_after({"SLDA": measured["SLDA"]})] == ["SLDA"]
    assert [one.method for one in before_and_after({"NCM": measured["NCM"]})] == ["NCM"]


def test_seeds_pool_to_sums_and_means(results: Path) -> None:
    runs = gravities_of(group_of(results))["SLDA"]
    one = pooled(runs)
    np.testing.assert_array_equal(one.flow.counts, sum(run.flow.counts for run in runs))
    assert one.drifts[0].shift == pytest.approx(np.mean([run.drifts[0].shift for run in runs]))
    np.testing.assert_array_equal(one.classes, runs[0].classes)


@pytest.mark.parametrize("draw", [draw_flow, draw_pull])
def test_figures_are_svg_even_where_nothing_crosses(results: Path, draw) -> None:
    shown = before_and_after(gravities_of(group_of(results)))
    still = [replace(one, flow=replace(one.flow, counts=np.diag(one.flow.asked))) for one in shown]
    for pictured in (shown, still):
        svg = draw(pictured, "small")
        assert ET.fromstring(svg).tag.endswith("svg")
        assert "currentColor" in svg


def test_names_cover_neither_each_other_nor_a_point() -> None:
    x, y = [0.1, 0.1, 0.102, 0.3, 0.9, 0.905], [0.0, 0.0, 0.01, 0.0, 0.5, 0.51]
    others = [0.11, 0.12, 0.93, 0.2], [0.005, 0.03, 0.5, 1.0]
    text_of = pytest.importorskip("matplotlib.text").Text
    with drawing("names", []) as (ax,):
        marks = [ax.scatter(*points, s=24, linewidths=0) for points in ((x, y), others)]
        ax.set_xlabel("a label that takes room")
        name_points(ax, ["aircraft", "medical", "digit", "art", "satellite", "flowers"], x, y)
        ax.figure.draw_without_rendering()
        boxes = [text_of.get_window_extent(text) for text in ax.texts]  # without the line to the point
        points = [ax.transData.transform(point) for one in marks for point in one.get_offsets()]
        frame = ax.get_window_extent()
    assert len(boxes) == 6
    assert not [(a, b) for place, a in enumerate(boxes) for b in boxes[:place] if a.overlaps(b)]
    assert not [point for point in points for box in boxes if box.contains(*point)]
    assert all(box.x1 < frame.x1 for box in boxes)
