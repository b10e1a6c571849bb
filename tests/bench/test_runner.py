from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hycal import METHODS, HyCalError
from hycal.bench import metrics
from hycal.bench.cells import read_cell
from hycal.bench.domains import load_domains, read_domain
from hycal.bench.methods import parse_variant
from hycal.bench.protocol import learn_domain, run_stream, zero_shot_correct
from hycal.bench.report.results import collect
from hycal.bench.runner import grid, run_grid
from hycal.bench.sampling import draw_samples
from hycal.bench.settings import load_setting
from tests.support.files import tree
from tests.support.small_benchmark import small_domains, small_setting, write_small

FAST = " ".join(f"KLDA[n_components={width}]" for width in range(1000, 1900, 50))  # slow enough to be killed amid


def outcome(label: str, protocol: str, *, text: bool = True) -> list[list[int | None]]:
    setting, embedded = small_setting(protocol), small_domains(text=text)
    samples = draw_samples(setting, 0, {name: domain.train_y for name, domain in embedded.items()})
    classifier = parse_variant(label).build(setting, text=text)
    return run_stream(classifier, list(embedded.values()), samples, protocol).correct


def test_cil_asks_learned_domains_among_learned_classes() -> None:
    setting, embedded = small_setting(), small_domains()
    correct = outcome("NCM", "CIL")
    assert [[cell is None for cell in row] for row in correct] == [
        [False, True, True],
        [False, False, True],
        [False, False, False],
    ]
    samples = draw_samples(setting, 0, {name: domain.train_y for name, domain in embedded.items()})
    fresh = METHODS["NCM"]()
    for domain in list(embedded.values())[:2]:
        rows, labels = list(samples[domain.name].rows), list(samples[domain.name].labels)
        fresh.partial_fit(domain.train_x[rows], np.array(domain.labels)[labels], domain=domain.name)
    first = embedded["a"]
    assert correct[1][0] == int((fresh.predict(first.test_x) == np.array(first.labels)[first.test_y]).sum())


def test_mtil_is_no_harder_than_cil() -> None:
    for easy, hard in zip(outcome("NCM", "MTIL"), outcome("NCM", "CIL"), strict=True):
        assert all(a is None or b is None or a >= b for a, b in zip(easy, hard, strict=True))


def test_x_tail_asks_everything_of_methods_that_know_names() -> None:
    for label in ("PrimalRAIL[n_components=64]", "DualRAIL", "TipAdapter", "HyCal", "HyCal[fusion=concat]", "GDA"):
        correct = outcome(label, "X-TAIL")
        assert all(cell is not None for row in correct for cell in row)
        assert sum(cell or 0 for cell in correct[0][1:]) > 0, "some are known by their names alone"
        assert correct[-1] == outcome(label, "CIL")[-1], "in the end all are learned"
    assert outcome("HyCal", "X-TAIL", text=False) == outcome("HyCal", "CIL", text=False)
    assert outcome("NCM", "X-TAIL") == outcome("NCM", "CIL")


def test_zero_shot_is_missing_without_text() -> None:
    assert zero_shot_correct(list(small_domains(text=False).values())) == [None] * 3
    assert all(isinstance(count, int) and count > 0 for count in zero_shot_correct(list(small_domains().values())))


def test_a_cell_reads_back_as_accuracies(tmp_path: Path) -> None:
    setting = small_setting()
    cells = grid([setting], [parse_variant("HyCal")], seeds=[0])
    summary = run_grid(cells, {"small": small_domains(text=False)}, tmp_path)
    assert (summary.computed, summary.known) == (1, 0)
    assert summary.shortages == {"small, seed 0": 3}
    result = read_cell(tmp_path / "cells" / cells[0].place)
    assert result.domains == ("a", "b", "c")
    assert result.samples == (12, 36, 25)
    assert np.isnan(result.A[0, 1])
    assert 30.0 < metrics.last(result.A) <= 100.0
    assert np.isnan(metrics.s_adapt(result.A, result.samples, result.Z))
    assert result.classes["a/class 0"][0] == 3
    document = json.loads((tmp_path / "cells" / cells[0].place).read_text())
    document["classes"]["a/class 0"] = [3, 0, 0]
    (tmp_path / "unasked.json").write_text(json.dumps(document))
    assert np.isnan(read_cell(tmp_path / "unasked.json").classes["a/class 0"][1]), "no test image, no accuracy"


@pytest.mark.parametrize("protocol", ["CIL", "MTIL", "X-TAIL"])
def test_a_cell_holds_the_calibration_error_of_the_answers_in_the_end(tmp_path: Path, protocol: str) -> None:
    setting, domains = small_setting(protocol), small_domains()
    (cell,) = grid([setting], [parse_variant("GDA")], seeds=[0])
    run_grid([cell], {"small": domains}, tmp_path)
    samples = draw_samples(setting, 0, {name: domain.train_y for name, domain in domains.items()})
    fresh = METHODS["GDA"]()
    for domain in domains.values():
        learn_domain(fresh, domain, samples[domain.name])
    chances, hits = [], []
    for domain in domains.values():
        candidates = domain.labels if protocol == "MTIL" else fresh.classes_.tolist()
        probabilities = fresh.predict_proba(domain.test_x, classes=candidates)
        chances += probabilities.max(axis=1).tolist()
        hits += (np.array(candidates)[probabilities.argmax(axis=1)] == np.array(domain.labels)[domain.test_y]).tolist()
    path = tmp_path / "cells" / cell.place
    assert read_cell(path).calibration_error == pytest.approx(metrics.calibration_error(chances, hits), abs=1e-6)
    document = json.loads(path.read_bytes())
    del document["calibration_error"]
    path.write_text(json.dumps(document), encoding="utf-8")
    assert np.isnan(read_cell(path).calibration_error), "files of before had none"


def test_a_tuned_cell_tunes_after_each_step_by_what_was_learned(tmp_path: Path) -> None:
    setting, domains = small_setting(), small_domains(text=False)
    cells = grid([setting], [parse_variant(label) for label in ("SLDA", "SLDA+tuned")], seeds=[0])
    run_grid(cells, {"small": domains}, tmp_path)
    default, tuned = (read_cell(tmp_path / "cells" / cell.place) for cell in cells)
    assert tuned.method == "SLDA+tuned"
    samples = draw_samples(setting, 0, {name: domain.train_y for name, domain in domains.items()})
    fresh = METHODS["SLDA"]()
    for step, domain in enumerate(domains.values()):
        learn_domain(fresh, domain, samples[domain.name])
        right = fresh.tune().predict(domain.test_x) == np.array(domain.labels)[domain.test_y]
        assert tuned.A[step, step] == pytest.approx(100.0 * right.mean())
    assert fresh.shrinkage != METHODS["SLDA"]().shrinkage
    assert tuned.calibration_error != default.calibration_error


def test_a_second_run_computes_nothing_and_a_change_recomputes(tmp_path: Path) -> None:
    cells = grid([small_setting()], [parse_variant("NCM"), parse_variant("ZeroShot")], seeds=[0, 1])
    embedded = {"small": small_domains()}
    assert run_grid(cells, embedded, tmp_path).computed == 4
    before = tree(tmp_path)
    assert run_grid(cells, embedded, tmp_path).computed == 0
    assert tree(tmp_path) == before
    changed = replace(embedded["small"]["a"], test_x=embedded["small"]["a"].test_x[::-1].copy())
    assert run_grid(cells, {"small": {**embedded["small"], "a": changed}}, tmp_path).computed == 4


def test_the_sample_list_follows_the_shots(tmp_path: Path) -> None:
    fewer = replace(small_setting(), domains=tuple(replace(domain, shots=2) for domain in small_setting().domains))
    for setting in (small_setting(), fewer):
        run_grid(grid([setting], [parse_variant("NCM")], seeds=[0]), {"small": small_domains()}, tmp_path)
    listed = (tmp_path / "samples" / "small.0.csv").read_text(encoding="utf-8").splitlines()
    assert len(listed) == 1 + 2 * (4 + 3 + 5)


def test_a_damaged_cell_is_computed_again(tmp_path: Path) -> None:
    cells = grid([small_setting()], [parse_variant("NCM")], seeds=[0])
    embedded = {"small": small_domains()}
    run_grid(cells, embedded, tmp_path)
    path = tmp_path / "cells" / cells[0].place
    whole = path.read_bytes()
    path.write_bytes(whole[:40])
    with pytest.raises(HyCalError, match="Delete it"):
        read_cell(path)
    assert run_grid(cells, embedded, tmp_path).computed == 1
    assert path.read_bytes() == whole


def test_a_method_that_needs_text_is_named_not_dropped(tmp_path: Path) -> None:
    cells = grid([small_setting()], [parse_variant("ZeroShot"), parse_variant("GDA")], seeds=[0])
    summary = run_grid(cells, {"small": small_domains(text=False)}, tmp_path)
    assert list(summary.impossible) == ["small, ZeroShot"]
    assert summary.computed == 1


def test_text_of_one_domain_alone_is_not_used(tmp_path: Path) -> None:
    cells = grid([small_setting()], [parse_variant(label) for label in ("HyCal", "HierarchicalHyCal")], seeds=[0])
    full = small_domains()
    without = {name: replace(domain, text=None) for name, domain in full.items()}
    runs = {"partly": {**without, "a": full["a"]}, "without": without}
    for name, domains in runs.items():
        run_grid(cells, {"small": domains}, tmp_path / name)
    for cell in cells:
        partly, none = (json.loads((tmp_path / name / "cells" / cell.place).read_bytes()) for name in runs)
        assert partly.pop("manifest")["text"] is none.pop("manifest")["text"] is False
        assert partly == none


def test_orders_change_the_stream_but_not_the_samples(tmp_path: Path) -> None:
    cells = grid([small_setting()], [parse_variant("NCM")], seeds=[0], orders=["default", "back"])
    run_grid(cells, {"small": small_domains()}, tmp_path)
    one, other = (read_cell(tmp_path / "cells" / cell.place) for cell in cells)
    assert one.domains == other.domains[::-1]
    assert np.allclose(np.sort(metrics.last_per_domain(one.A)), np.sort(metrics.last_per_domain(other.A)))


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("Magic", "There is no method 'Magic'"),
        ("HyCal:best", "no profile 'best'"),
        ("HyCal[alpha]", "sets nothing"),
        ("HyCal[", "is not a method"),
    ],
)
def test_wrong_labels_say_so(label: str, message: str) -> None:
    with pytest.raises(HyCalError, match=message):
        parse_variant(label)


def test_parameters_come_from_setting_profile_and_label() -> None:
    setting = load_setting("xd8-balanced")
    assert parse_variant("RanPAC").parameters(setting, text=True)["n_components"] == 1024
    assert parse_variant("RanPAC:official").parameters(setting, text=True)["n_components"] == 10000
    assert parse_variant("HyCal:official[alpha=3]").parameters(setting, text=False) == {
        **METHODS["HyCal"]().stored_parameters,
        "alpha": 3,
        "beta": 5,
        "rule": "released",
        "fusion": "image",
    }
    with pytest.raises(HyCalError, match="no parameter 'speed'"):
        parse_variant("NCM[speed=1]").parameters(setting, text=True)


@pytest.mark.parametrize("method", [name for name in METHODS if "random_state" in METHODS[name]().get_params()])
def test_the_seed_draws_the_random_features_and_the_manifest_says_so(tmp_path: Path, method: str) -> None:
    variant = parse_variant(f"{method}[n_components=16]")
    cells = grid([small_setting()], [variant], seeds=[0, 2])
    run_grid(cells, {"small": small_domains()}, tmp_path)
    for cell in cells:
        manifest = read_cell(tmp_path / "cells" / cell.place).manifest
        assert manifest["parameters"]["random_state"] == cell.seed
    assert variant.build(small_setting(), text=True, seed=2).get_params()["random_state"] == 2
    fixed = parse_variant(f"{method}[random_state=7]").parameters(small_setting(), text=True, seed=2)
    assert fixed["random_state"] == 7
    assert list(collect(tmp_path).groups[0].runs) == [variant.label], "runs of one table, though their features differ"


def test_missing_embeddings_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(HyCalError, match="--features"):
        load_domains(load_setting("balanced"))
    with pytest.raises(HyCalError, match="expected the embeddings of 'dtd'"):
        read_domain(tmp_path, "dtd")
    (tmp_path / "dtd.npz").write_bytes(b"nothing")
    with pytest.raises(HyCalError, match="does not hold an embedded domain"):
        read_domain(tmp_path, "dtd")


def command(setting: Path, embeddings: Path, out: Path, *more: str) -> list[str]:
    run = ["run", str(setting), "--embeddings", str(embeddings), "--out", str(out), "--methods", FAST]
    return [sys.executable, "-c", "from hycal.commands.bench import app; app()", *run, *more]


def kill_amid_work(arguments: list[str], out: Path, delay: float) -> int:
    """Start a run, kill it `delay` seconds after it finished a run or two; returns how many results it left."""
    began = len(list((out / "timing").glob("*/[!.]*.json")))
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(list((out / "timing").glob("*/[!.]*.json"))) == began:
        time.sleep(0.002)
    time.sleep(delay)
    process.kill()
    process.wait()
    return len(list((out / "cells").glob("*/[!.]*.json")))


def test_parallel_runs_and_kills_give_the_same_bytes(tmp_path: Path) -> None:
    """Two whole runs, one of them in two processes, and one killed at ten random moments: all the same bytes."""
    setting, embeddings = write_small(tmp_path)
    one, two, killed = (tmp_path / name for name in ("one", "two", "killed"))
    subprocess.run(command(setting, embeddings, one, "--jobs", "1"), check=True, capture_output=True)
    subprocess.run(command(setting, embeddings, two, "--jobs", "2"), check=True, capture_output=True)
    moments, resume = random.Random(0), command(setting, embeddings, killed, "--jobs", "1")
    left = [kill_amid_work(resume, killed, moments.uniform(0.0, 0.05)) for _ in range(10)]
    assert left == sorted(left)
    assert len(set(left)) > 5, "most kills must fall amid the work"
    subprocess.run(resume, check=True, capture_output=True)
    files = [{k: v for k, v in tree(out).items() if not k.startswith("timing")} for out in (one, two, killed)]
    assert len(files[0]) == 18 * 3 + 3
    assert files[0] == files[1] == files[2]
