"""Settings with text, on real embeddings: cars in three domains, with the names of all classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hycal.bench.domains import BenchDomain
from hycal.bench.methods import parse_methods
from hycal.bench.report.results import Results, collect
from hycal.bench.runner import grid, run_grid
from hycal.bench.settings import read_setting
from hycal.validation import unit_rows

DOMAINS = {"few": (range(20), 4), "many": (range(20, 40), 16), "middle": (range(40, 60), 8)}
METHODS = "HyCal[beta=5] ZeroShot NCM GDA TipAdapter PrimalRAIL[n_components=512] study:fusion"


def settings() -> list[Any]:
    listed = "".join(
        f'[[domains]]\nname = "{name}"\nclasses = {len(classes)}\nshots = {shots}\n'
        for name, (classes, shots) in DOMAINS.items()
    )
    head = 'source = "embeddings"\nseeds = [0]\nshort = "all-available"\nsampling = "own"\n'
    head += "[parameters.RanPAC]\nn_components = 64\n"
    return [
        read_setting(f"cars-{protocol.lower()}", f'title = "cars"\nprotocol = "{protocol}"\n{head}{listed}')
        for protocol in ("CIL", "MTIL", "X-TAIL")
    ]


def domain(cars: Any, name: str) -> BenchDomain:
    classes = DOMAINS[name][0]
    train, test = (np.isin(cars[f"{split}_y"], classes) for split in ("train", "val"))
    return BenchDomain(
        name=name,
        train_x=unit_rows(cars["train_x"][train]),
        train_y=cars["train_y"][train] - classes.start,
        test_x=unit_rows(cars["val_x"][test]),
        test_y=cars["val_y"][test] - classes.start,
        class_names=tuple(f"car {number}" for number in classes),
        text=unit_rows(cars["text"][list(classes)]),
    )


@pytest.fixture(scope="module")
def results(cars: Any, tmp_path_factory: pytest.TempPathFactory) -> Results:
    out: Path = tmp_path_factory.mktemp("cars")
    embedded = {name: domain(cars, name) for name in DOMAINS}
    chosen = settings()
    summary = run_grid(grid(chosen, parse_methods(METHODS)), {setting.name: embedded for setting in chosen}, out)
    assert not summary.impossible
    return collect(out)


def test_nothing_is_missing_where_there_is_text(results: Results) -> None:
    for protocol in ("cil", "mtil", "x-tail"):
        group = results.find(f"cars-{protocol}")
        assert group is not None
        assert group.has_text
        for method in group.runs:
            for column in ("last", "average", "s_adapt", "s_last", "s_cde"):
                assert 30.0 < group.value(method, column).mean < 100.0


def test_zero_shot_is_the_nearest_text_among_all_names(results: Results, cars: Any) -> None:
    group = results.find("cars-cil")
    assert group is not None
    parts = [domain(cars, name) for name in DOMAINS]
    texts = np.concatenate([part.text for part in parts if part.text is not None])
    for place, part in enumerate(parts):
        right = np.mean((part.test_x @ texts.T).argmax(axis=1) == part.test_y + 20 * place)
        assert group.zero_shot(f"last:{part.name}").mean == pytest.approx(100.0 * right)
    assert group.value("ZeroShot", "last").mean == pytest.approx(group.zero_shot("last").mean)


def test_names_are_known_before_they_are_learned(results: Results) -> None:
    group = results.find("cars-x-tail")
    assert group is not None
    for method in ("GDA", "TipAdapter", "ZeroShot", "PrimalRAIL[n_components=512]"):
        assert group.value(method, "transfer").mean > 5.0, method
    for method in (
        "HyCal[beta=5]",
        "HyCal[fusion=concat]",
    ):  # an image lies nearer to images of any class than to its own text
        assert 0.0 <= group.value(method, "transfer").mean < 5.0, method
    assert np.isnan(group.value("NCM", "transfer").mean)
