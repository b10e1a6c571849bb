from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hycal import HyCalError
from hycal.bench.domains import BenchDomain
from hycal.bench.methods import parse_variant
from hycal.bench.runner import grid, run_grid
from hycal.bench.views import read_view
from tests.support.files import tree
from tests.support.small_benchmark import small_domains, small_setting


def with_examples() -> dict[str, BenchDomain]:
    domains = small_domains()
    return domains | {"b": replace(domains["b"], examples=("QQ==",))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("views")
    cells = grid([small_setting()], [parse_variant("HyCal"), parse_variant("HyCal[metric=cosine]")], seeds=[0, 1])
    summary = run_grid(cells, {"small": with_examples()}, out)
    assert (summary.computed, summary.views) == (4, 1)
    return out


def test_a_view_agrees_with_the_cells(folder: Path) -> None:
    (path,) = (folder / "views").rglob("*.json")
    view = read_view(path)
    assert view.domains == ("a", "b", "c")
    asked = sum(len(domain.test_y) for domain in small_domains().values())
    assert sum(view.agreement.values()) == len(view.cosine) == asked
    for name, label in (("dynamic", "HyCal"), ("cosine", "HyCal[metric=cosine]")):
        cell = json.loads((folder / "cells" / "small" / f"default.CIL.{label}.0.json").read_bytes())
        right = sum(number for who, number in view.agreement.items() if name in who.split())
        assert right == sum(cell["correct"][-1])
    assert np.array_equal(view.right[:, 2].sum(), sum(n for who, n in view.agreement.items() if "dynamic" in who))
    assert np.all(np.abs(view.cosine) <= 1.0)
    assert np.all(view.distance >= 0.0)


def test_ranks_are_places_among_all_classes(folder: Path) -> None:
    (path,) = (folder / "views").rglob("*.json")
    view = read_view(path)
    assert view.ranks.min() == 1 and view.ranks.max() <= 4 + 3 + 5
    np.testing.assert_array_equal(view.ranks == 1, view.right[:, :2])


def test_a_view_has_the_examples_of_the_domains_that_came_with_some(folder: Path) -> None:
    (path,) = (folder / "views").rglob("*.json")
    assert read_view(path).examples == {"b": ["QQ=="]}
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"QQ==", b"<script>"))
    with pytest.raises(HyCalError, match="is not a view"):
        read_view(path)
    path.write_bytes(whole)


def test_maps_hold_every_class_mean_and_test_images_of_every_domain(folder: Path) -> None:
    (path,) = (folder / "views").rglob("*.json")
    for points in read_view(path).maps.values():
        assert points.means.sum() == 4 + 3 + 5
        assert set(points.domains[~points.means]) == {0, 1, 2}
        assert np.isfinite(points.places).all()


def test_a_second_run_makes_the_same_bytes_and_nothing_twice(folder: Path, tmp_path: Path) -> None:
    cells = grid([small_setting()], [parse_variant("HyCal")], seeds=[0])
    before = tree(folder)
    assert run_grid(cells, {"small": with_examples()}, folder).views == 0
    assert tree(folder) == before
    assert run_grid(cells, {"small": with_examples()}, tmp_path).views == 1
    assert tree(tmp_path / "views") == tree(folder / "views")


def test_a_damaged_view_says_what_to_do_and_is_made_again(folder: Path) -> None:
    (path,) = (folder / "views").rglob("*.json")
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    with pytest.raises(HyCalError, match="Delete it"):
        read_view(path)
    assert run_grid(
        grid([small_setting()], [parse_variant("HyCal")], seeds=[0]), {"small": with_examples()}, folder
    ).views
    assert path.read_bytes() == whole
