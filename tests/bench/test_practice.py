"""scikit-learn's classifiers beside HierarchicalHyCal: what is fitted, kept, refused and reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifierCV

from hycal import HyCalError
from hycal.bench.methods import parse_methods
from hycal.bench.practice import CLASSIFIERS, OURS, read_practice, run_practice
from hycal.bench.report.blocks import NotRun, ResultTable
from hycal.bench.report.results import Results, collect
from hycal.bench.report.sections.practice import practice
from hycal.bench.runner import grid, run_grid
from hycal.bench.sampling import draw_samples
from tests.support.small_benchmark import small_domains, small_setting


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out: Path = tmp_path_factory.mktemp("practice")
    for seed in (0, 1):
        assert run_practice(small_setting(), seed, small_domains(text=False), out)
    return out


def test_every_classifier_answers_the_images_of_the_run(folder: Path) -> None:
    first, second = read_practice(folder)
    assert (first.setting, first.seed, second.seed) == ("small", 0, 1)
    assert list(first.fitted) == [OURS, *CLASSIFIERS]
    assert all([hits.size for hits in one.right] == [32, 24, 40] for one in first.fitted.values())
    assert all(one.last > 50 for one in first.fitted.values())
    missing = [name for name, one in first.fitted.items() if np.isnan(one.calibration_error)]
    assert missing == ["linear SVM", "ridge"]


def test_ours_is_the_cell_of_the_benchmark(folder: Path, tmp_path: Path) -> None:
    run_grid(grid([small_setting()], parse_methods(OURS), seeds=[0]), {"small": small_domains(text=False)}, tmp_path)
    (cell,) = collect(tmp_path).groups[0].runs[OURS]
    ours = read_practice(folder)[0].fitted[OURS]
    assert all(map(np.array_equal, ours.right, cell.right))
    assert ours.calibration_error == pytest.approx(cell.calibration_error, abs=0.1)


def test_theirs_learn_the_samples_of_all_domains(folder: Path) -> None:
    domains = small_domains(text=False)
    samples = draw_samples(small_setting(), 0, {name: domain.train_y for name, domain in domains.items()})
    X = np.concatenate([domain.train_x[list(samples[name].rows)] for name, domain in domains.items()])
    y = np.concatenate([np.array(domain.labels)[list(samples[name].labels)] for name, domain in domains.items()])
    model = RidgeClassifierCV(alphas=np.logspace(-3, 2, 11)).fit(X, y)
    for domain, hits in zip(domains.values(), read_practice(folder)[0].fitted["ridge"].right, strict=True):
        assert np.array_equal(hits, model.predict(domain.test_x) == np.array(domain.labels)[domain.test_y])


def test_a_seed_is_run_again_only_with_other_samples(folder: Path, tmp_path: Path) -> None:
    assert not run_practice(small_setting(), 0, small_domains(text=False), folder)
    assert run_practice(small_setting(), 0, small_domains(text=False), tmp_path)
    fewer = replace(small_setting(), domains=tuple(replace(domain, shots=2) for domain in small_setting().domains))
    assert run_practice(fewer, 0, small_domains(text=False), tmp_path)


def test_one_shot_has_nothing_to_choose_by(tmp_path: Path) -> None:
    one = replace(small_setting(), domains=tuple(replace(domain, shots=1) for domain in small_setting().domains))
    with pytest.raises(HyCalError, match="two images of every class"):
        run_practice(one, 0, small_domains(text=False), tmp_path)
    assert not list(tmp_path.rglob("*.json"))


def test_a_file_of_something_else_is_named(tmp_path: Path) -> None:
    (tmp_path / "practice").mkdir()
    (tmp_path / "practice" / "small.0.json").write_text("{}")
    with pytest.raises(HyCalError, match=r"small\.0\.json is not a result of `hycal bench practice`"):
        read_practice(tmp_path)


def test_the_report_sets_accuracy_lead_ece_and_time_beside_ours(folder: Path) -> None:
    runs = read_practice(folder)
    (section,) = practice(Results((), practice=runs))
    (table,) = section.blocks
    assert isinstance(table, ResultTable)
    rows = {name: dict(zip([c.name for c in table.columns], values, strict=True)) for name, values in table.rows}
    assert rows[OURS]["learning time, ratio"].mean == 1.0
    expected = np.mean([run.fitted["ridge"].learning / run.fitted[OURS].learning for run in runs])
    assert rows["ridge"]["learning time, ratio"].mean == pytest.approx(expected)
    gap = rows[OURS]["last"].mean - rows["ridge"]["last"].mean
    assert rows["ridge"]["lead"].mean == pytest.approx(gap)
    assert np.isnan(rows["ridge"]["ece"].mean)
    (empty,) = practice(Results(()))
    assert isinstance(empty.blocks[0], NotRun)
