"""Steps of a stream: sessions inside a data set, one domain for all classes, tests in the end alone, learning alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hycal import METHODS, HierarchicalHyCal, HyCalError
from hycal.bench import metrics
from hycal.bench.cells import Cell, CellResult, read_cell
from hycal.bench.domains import BenchDomain, load_domains, write_domain
from hycal.bench.methods import Variant, parse_methods, parse_variant
from hycal.bench.protocol import learn_domain
from hycal.bench.report.results import column_of
from hycal.bench.runner import grid, run_grid
from hycal.bench.sampling import draw_samples
from hycal.bench.settings import Setting, read_setting
from tests.support.small_benchmark import SETTING, small_domains, small_setting

SESSIONS = SETTING[: SETTING.index("[orders]")].replace("PROTOCOL", "CIL") + (
    '[[domains]]\nname = "c"\nclasses = 5\nshots = 3\nsessions = 3\nbase = { classes = 2, shots = 8 }\n'
)


def run(setting: Setting, label: str, domains: dict[str, BenchDomain], out: Path) -> CellResult:
    (cell,) = grid([setting], parse_methods(label), seeds=[0])
    run_grid([cell], {setting.name: domains}, out)
    return read_cell(out / "cells" / cell.place)


def sessions(folder: Path) -> tuple[Setting, dict[str, BenchDomain]]:
    setting = read_setting("sessions", SESSIONS)
    write_domain(folder, small_domains()["c"])
    return setting, load_domains(setting, folder)


def test_a_session_has_the_rows_and_texts_of_its_classes(tmp_path: Path) -> None:
    setting, parts = sessions(tmp_path)
    whole = load_domains(read_setting("whole", SESSIONS.split("sessions =")[0]), tmp_path)["c"]
    assert list(parts) == ["c 1", "c 2", "c 3"]
    for domain in setting.domains:
        part = parts[domain.name]
        assert part.told == "c"
        assert part.class_names == tuple(whole.class_names[number] for number in domain.members)
        for place, number in enumerate(domain.members):
            assert np.array_equal(part.train_x[part.train_y == place], whole.train_x[whole.train_y == number])
            assert np.array_equal(part.test_x[part.test_y == place], whole.test_x[whole.test_y == number])
            assert whole.text is not None and part.text is not None
            assert np.array_equal(part.text[place], whole.text[number])
    assert sum(len(part.test_y) for part in parts.values()) == len(whole.test_y)


@pytest.mark.parametrize("classes", [4, 7])
def test_sessions_of_more_or_fewer_classes_than_there_are(tmp_path: Path, classes: int) -> None:
    write_domain(tmp_path, small_domains()["c"])
    other = read_setting("other", SESSIONS.replace("classes = 5", f"classes = {classes}"))
    with pytest.raises(HyCalError, match=f"'c' has 5 classes; setting 'other' splits {classes} into sessions"):
        load_domains(other, tmp_path)


def test_sessions_are_learned_step_by_step_under_one_domain(tmp_path: Path) -> None:
    setting, parts = sessions(tmp_path)
    result = run(setting, "HierarchicalHyCal", parts, tmp_path / "out")
    assert result.samples == (16, 6, 3)
    assert result.gravity is None, "there is one domain"
    taught = HierarchicalHyCal()
    samples = draw_samples(setting, 0, {name: part.train_y for name, part in parts.items()})
    for part in parts.values():
        learn_domain(taught, part, samples[part.name])
    assert set(taught.domains_.tolist()) == {"c"}
    right = [np.mean(taught.predict(part.test_x) == np.array(part.labels)[part.test_y]) for part in parts.values()]
    assert column_of(result, "base") == pytest.approx(100 * right[0])
    assert column_of(result, "novel") == pytest.approx(100 * np.average(right[1:], weights=[16, 8]))
    assert column_of(result, "harmonic") == metrics.harmonic_mean(column_of(result, "base"), column_of(result, "novel"))


def test_one_domain_is_told_for_all_classes(tmp_path: Path) -> None:
    domains = small_domains(text=False)
    told = Cell(small_setting(), "default", 0, Variant("NCM", one_domain=True)).domains(domains)
    assert {domain.told for domain in told} == {"all"}
    alike = run(small_setting(), "HierarchicalHyCal+one-domain", domains, tmp_path)
    taught = HierarchicalHyCal()
    samples = draw_samples(small_setting(), 0, {name: domain.train_y for name, domain in domains.items()})
    for domain in domains.values():
        learn_domain(taught, replace(domain, told="any"), samples[domain.name])
    for domain, hits in zip(domains.values(), alike.right, strict=True):
        assert np.array_equal(hits, taught.predict(domain.test_x) == np.array(domain.labels)[domain.test_y])
    named = run(small_setting(), "HierarchicalHyCal", domains, tmp_path)
    assert named.gravity is not None
    assert alike.gravity is None
    assert alike.calibration_error != named.calibration_error


def test_a_test_in_the_end_alone_is_the_last_of_every_step(tmp_path: Path) -> None:
    domains = small_domains()
    every = run(small_setting(), "GDA+tuned", domains, tmp_path / "every")
    last = run(replace(small_setting(), tests="last-step"), "GDA+tuned", domains, tmp_path / "last")
    assert np.array_equal(last.A[-1], every.A[-1])
    assert np.isnan(last.A[:-1]).all()
    assert np.isnan(last.alone).all()
    assert last.gravity is None
    assert all(map(np.array_equal, last.right, every.right))


@pytest.mark.parametrize("label", ["SLDA", "NCM+tuned"])
def test_the_reference_of_forward_transfer_learned_one_domain_alone(tmp_path: Path, label: str) -> None:
    setting, domains = small_setting("MTIL"), small_domains(text=False)
    result = run(setting, label, domains, tmp_path)
    samples = draw_samples(setting, 0, {name: domain.train_y for name, domain in domains.items()})
    for number, domain in enumerate(domains.values()):
        variant = parse_variant(label)
        taught = METHODS[variant.method]()
        learn_domain(taught, domain, samples[domain.name])
        if variant.tuned:
            taught.tune()
        right = np.mean(taught.predict(domain.test_x) == np.array(domain.labels)[domain.test_y])
        assert result.alone[number] == pytest.approx(100 * right)
    assert column_of(result, "forward") == metrics.forward_transfer(result.A, result.alone)


def test_a_domain_alone_that_cannot_be_tuned_has_no_reference(tmp_path: Path) -> None:
    first, second, third = small_setting().domains
    setting = replace(small_setting(), domains=(first, replace(second, shots=1), third))
    result = run(setting, "NCM+tuned", small_domains(text=False), tmp_path)
    assert np.isnan(result.alone).tolist() == [False, True, False]


def test_hits_of_each_image_add_up_to_the_counts(tmp_path: Path) -> None:
    result = run(small_setting(), "NCM", small_domains(), tmp_path)
    assert result.asked == (32, 24, 40)
    assert [hits.size for hits in result.right] == [32, 24, 40]
    assert [100 * hits.mean() for hits in result.right] == pytest.approx(result.A[-1].tolist())
