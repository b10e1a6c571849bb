from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hycal import HyCalError
from hycal.bench.domains import BenchDomain
from hycal.bench.methods import parse_methods
from hycal.bench.report.results import collect
from hycal.bench.report.sections.setting import domain_tables
from hycal.bench.runner import grid, run_grid
from hycal.bench.settings import Setting
from hycal.commands.bench import app
from tests.support.small_benchmark import small_domains, small_setting


def run(
    out: Path,
    methods: str,
    seeds: list[int],
    *,
    setting: Setting | None = None,
    domains: dict[str, BenchDomain] | None = None,
) -> None:
    chosen = setting or small_setting()
    cells = grid([chosen], parse_methods(methods), seeds=seeds, orders=["default", "back"])
    run_grid(cells, {"small": domains or small_domains()}, out)


def shuffled() -> dict[str, BenchDomain]:
    domains = small_domains()
    return {**domains, "a": replace(domains["a"], test_x=domains["a"].test_x[::-1].copy())}


def more_shots() -> Setting:
    setting = small_setting()
    return replace(setting, domains=(replace(setting.domains[0], shots=4), *setting.domains[1:]))


def other_parameters() -> Setting:
    return replace(small_setting(), parameters={"SLDA": {"shrinkage": 0.5}})


def test_a_folder_of_orders_protocols_samplings_and_methods_is_honest(tmp_path: Path) -> None:
    for setting in (small_setting(), small_setting("MTIL"), small_setting().sampled("released")):
        run(tmp_path, "HyCal NCM SLDA+tuned", [0, 1], setting=setting)
        run(tmp_path, "NCM SLDA", [1, 2], setting=setting)
    assert len(collect(tmp_path).groups) == 6


@pytest.mark.parametrize(
    ("entry", "setting", "domains", "seeds"),
    [
        ("embeddings", None, shuffled(), [0]),
        ("embeddings", None, shuffled(), [3]),
        ("embeddings", None, small_domains(text=False), [0]),
        ("domains", replace(small_setting(), domains=small_setting().domains[::-1]), None, [0]),
        ("short", replace(small_setting(), short="with-replacement"), None, [0]),
        ("sample_list", more_shots(), None, [0]),
        ("parameters", other_parameters(), None, [0]),
    ],
)
def test_runs_of_other_inputs_are_named(
    tmp_path: Path, entry: str, setting: Setting | None, domains: dict[str, BenchDomain] | None, seeds: list[int]
) -> None:
    run(tmp_path, "NCM SLDA", [0, 1, 2])
    run(tmp_path, "SLDA", seeds, setting=setting, domains=domains)
    with pytest.raises(HyCalError, match="made from different inputs") as failed:
        collect(tmp_path)
    odd, usual = str(failed.value).split("unlike")
    assert f"({entry})" in odd
    assert f"CIL.SLDA.{seeds[0]}.json" in odd
    assert "NCM" not in odd
    assert ".json" in usual


def test_a_view_of_other_embeddings_is_named(tmp_path: Path) -> None:
    run(tmp_path, "HyCal", [0], domains=shuffled())
    for path in (tmp_path / "cells").rglob("*.json"):
        path.unlink()
    run(tmp_path, "NCM", [0, 1])
    with pytest.raises(HyCalError, match=r"figures.small.default\.CIL\.0\.json unlike"):
        collect(tmp_path)


def test_other_versions_are_a_note(tmp_path: Path) -> None:
    run(tmp_path, "NCM", [0, 1])
    assert "version" not in domain_tables(collect(tmp_path).groups[0])[0].caption
    path = tmp_path / "cells" / "small" / "default.CIL.NCM.0.json"
    document = json.loads(path.read_bytes())
    document["manifest"]["versions"]["numpy"] = "1.0"
    path.write_text(json.dumps(document), encoding="utf-8")
    caption = domain_tables(collect(tmp_path).groups[0])[0].caption
    assert "Not all runs were made with the same version of numpy." in caption


def test_a_report_reads_and_parses_each_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, "HyCal NCM", [0, 1])
    written = sorted([*(tmp_path / "cells").rglob("*.json"), *(tmp_path / "figures").rglob("*.json")])
    assert len(written) == 2 * 2 * 2 + 1
    read: list[Path] = []
    parsed: list[object] = []
    read_bytes, loads = Path.read_bytes, json.loads
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or read_bytes(path))
    monkeypatch.setattr(json, "loads", lambda text: parsed.append(text) or loads(text))
    reported = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert reported.exit_code == 0, reported.output
    assert sorted(path for path in read if path.suffix == ".json" and path.name != "efficiency.json") == written
    assert len(parsed) == len(written)
