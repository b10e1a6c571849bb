from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hycal import HyCalError
from hycal.bench.domains import BenchDomain
from hycal.bench.figure_data import read_figure_data
from hycal.bench.methods import parse_variant
from hycal.bench.runner import grid, run_grid
from tests.support.files import tree
from tests.support.small_benchmark import small_domains, small_setting


def with_examples() -> dict[str, BenchDomain]:
    domains = small_domains()
    return domains | {"b": replace(domains["b"], examples=("QQ==",))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("figures")
    cells = grid([small_setting()], [parse_variant("HyCal"), parse_variant("HyCal[metric=cosine]")], seeds=[0, 1])
    summary = run_grid(cells, {"small": with_examples()}, out)
    assert (summary.computed, summary.figures) == (4, 1)
    return out


def test_a_view_agrees_with_the_cells(folder: Path) -> None:
    (path,) = (folder / "figures").rglob("*.json")
    data = read_figure_data(path)
    assert data.domains == ("a", "b", "c")
    asked = sum(len(domain.test_y) for domain in small_domains().values())
    assert sum(data.agreement.values()) == len(data.cosine) == asked
    for name, label in (("dynamic", "HyCal"), ("cosine", "HyCal[metric=cosine]")):
        cell = json.loads((folder / "cells" / "small" / f"default.CIL.{label}.0.json").read_bytes())
        right = sum(number for who, number in data.agreement.items() if name in who.split())
        assert right == sum(cell["correct"][-1])
    assert np.array_equal(data.right[:, 2].sum(), sum(n for who, n in data.agreement.items() if "dynamic" in who))
    assert np.all(np.abs(data.cosine) <= 1.0)
    assert np.all(data.distance >= 0.0)


def test_ranks_are_places_among_all_classes(folder: Path) -> None:
    (path,) = (folder / "figures").rglob("*.json")
    data = read_figure_data(path)
    assert data.ranks.min() == 1 and data.ranks.max() <= 4 + 3 + 5
    np.testing.assert_array_equal(data.ranks == 1, data.right[:, :2])


def test_a_view_has_the_examples_of_the_domains_that_came_with_some(folder: Path) -> None:
    (path,) = (folder / "figures").rglob("*.json")
    assert read_figure_data(path).examples == {"b": ["QQ=="]}
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"QQ==", b"<script>"))
    with pytest.raises(HyCalError, match="is not figure data"):
        read_figure_data(path)
    path.write_bytes(whole)


def test_maps_hold_every_class_mean_and_test_images_of_every_domain(folder: Path) -> None:
    (path,) = (folder / "figures").rglob("*.json")
    for points in read_figure_data(path).maps.values():
        assert points.means.sum() == 4 + 3 + 5
        assert set(points.domains[~points.means]) == {0, 1, 2}
        assert np.isfinite(points.places).all()


def test_a_second_run_makes_the_same_bytes_and_nothing_twice(folder: Path, tmp_path: Path) -> None:
    cells = grid([small_setting()], [parse_variant("HyCal")], seeds=[0])
    before = tree(folder)
    assert run_grid(cells, {"small": with_examples()}, folder).figures == 0
    assert tree(folder) == before
    assert run_grid(cells, {"small": with_examples()}, tmp_path).figures == 1
    assert tree(tmp_path / "figures") == tree(folder / "figures")


def test_a_damaged_view_says_what_to_do_and_is_made_again(folder: Path) -> None:
    (path,) = (folder / "figures").rglob("*.json")
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    with pytest.raises(HyCalError, match="Delete it"):
        read_figure_data(path)
    assert run_grid(
        grid([small_setting()], [parse_variant("HyCal")], seeds=[0]), {"small": with_examples()}, folder
    ).figures
    assert path.read_bytes() == whole
