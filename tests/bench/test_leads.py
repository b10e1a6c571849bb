"""Paired leads: by hand, against a simulation whose truth is known, and in the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from hycal.bench.leads import lead_of_runs, paired_lead
from hycal.bench.methods import knows_domains, parse_methods
from hycal.bench.report.blocks import NotRun, ResultTable, Section
from hycal.bench.report.results import Results, collect
from hycal.bench.report.sections.findings import lead_table, leads
from hycal.bench.report.writers import render
from hycal.bench.runner import grid, run_grid
from tests.support.small_benchmark import small_domains, small_setting


def hits(*digits: int) -> npt.NDArray[np.bool_]:
    return np.array(digits, dtype=np.bool_)


def test_a_lead_and_its_interval_by_hand() -> None:
    ours = [[hits(1, 1, 1, 0)], [hits(1, 1, 0, 0)]]
    theirs = [[hits(1, 0, 0, 0)], [hits(1, 0, 1, 0)]]
    # by seed 50 and 0: variance 1250 / 2 seeds. By image 0, 100, 0, 0: variance 2500 / 4 images. Freedom 3.
    lead = paired_lead(ours, theirs)
    assert lead.mean == 25.0
    assert lead.interval == pytest.approx(student.ppf(0.975, 3) * np.sqrt(625 + 625))
    assert not lead.beyond_chance
    assert lead.seeds == 2


def test_domains_weigh_equally_however_many_images_they_have() -> None:
    large, small = hits(*[1, 0] * 50), hits(1, 1)
    lead = paired_lead([[large, small]], [[~large, hits(1, 1)]])
    # one seed: test images alone. 100 images of +-100 around 0 in the first of two domains, nothing in the other.
    assert lead.mean == 0.0
    variance = 100**2 * 100 / 99 / 100 / 2**2
    assert lead.interval == pytest.approx(student.ppf(0.975, 99 + 1) * np.sqrt(variance), rel=1e-3)


def test_equal_answers_are_no_lead() -> None:
    same = [[hits(1, 0, 1)], [hits(1, 1, 1)]]
    lead = paired_lead(same, same)
    assert (lead.mean, lead.interval, lead.beyond_chance) == (0.0, 0.0, False)


def test_the_interval_holds_the_truth_in_about_95_of_100_draws() -> None:
    rng, held = np.random.default_rng(0), []
    truth = 100 * (norm.cdf(0.3 / np.sqrt(1 + 0.5**2 + 0.15**2 + 1)) - 0.5)
    for _ in range(300):
        easy, better = rng.normal(size=400), rng.normal(0.3, 0.5, size=400)  # by image: ease, and how ours differs
        seeds = rng.normal(0.0, 0.15, size=(4, 1))
        theirs = easy + rng.normal(size=(4, 400)) > 0
        ours = easy + better + seeds + rng.normal(size=(4, 400)) > 0
        lead = paired_lead([[row] for row in ours], [[row] for row in theirs])
        held.append(abs(lead.mean - truth) < lead.interval)
    assert 0.93 <= np.mean(held) <= 1.0


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Results:
    out: Path = tmp_path_factory.mktemp("leads")
    methods = parse_methods("HierarchicalHyCal HierarchicalHyCal+one-domain NCM NCM+tuned HyCal[metric=cosine]")
    run_grid(grid([small_setting()], methods), {"small": small_domains(text=False)}, out)
    return collect(out)


def test_the_table_has_every_compared_method_best_first_with_its_domains_and_lead(compared: Results) -> None:
    (section,) = leads(compared)
    (table,) = section.blocks
    assert isinstance(table, ResultTable)
    rows = dict(table.rows)
    assert set(rows) == {"HierarchicalHyCal", "HierarchicalHyCal+one-domain", "NCM", "NCM+tuned"}, "no ablations"
    means = [values[1].mean for values in rows.values()]
    assert means == sorted(means, reverse=True)
    assert [rows[name][0].text for name in ("HierarchicalHyCal", "HierarchicalHyCal+one-domain", "NCM")] == [
        "yes",
        "no",
        "no",
    ]
    assert np.isnan(rows["HierarchicalHyCal"][2].mean)
    assert rows["NCM"][2].mean == pytest.approx(rows["HierarchicalHyCal"][1].mean - rows["NCM"][1].mean)


def test_the_report_says_where_a_lead_is_chance(compared: Results) -> None:
    (group,) = compared.groups
    ours, theirs = group.runs["HierarchicalHyCal"], group.runs["NCM"]
    never = tuple(replace(run, right=tuple(np.zeros_like(hits) for hits in run.right)) for run in theirs)
    runs = {"HierarchicalHyCal": ours, "NCM": never, "NCM+tuned": ours}
    text = render("markdown", [Section("one", "One", (lead_table("One", {"": replace(group, runs=runs)}),))])
    row = {line.split(" | ")[0].strip("| "): line for line in text.splitlines() if line.startswith("| ")}
    assert "+0.00 ± 0.00, chance" in row["NCM+tuned"]
    assert "chance" not in row["NCM"]


def test_a_row_without_some_columns_stands_where_its_others_put_it(compared: Results) -> None:
    (group,) = compared.groups
    ours, theirs = group.runs["HierarchicalHyCal"], group.runs["NCM"]
    never = tuple(replace(run, A=np.zeros_like(run.A)) for run in theirs)
    first = replace(group, runs={"HierarchicalHyCal": ours, "NCM": never, "SLDA": theirs})
    second = replace(group, runs={"HierarchicalHyCal": ours})
    names = [name for name, _ in lead_table("Two", {"first": first, "second": second}).rows]
    assert names.index("SLDA") < names.index("NCM")


def test_only_seeds_that_both_ran_are_compared(compared: Results) -> None:
    (group,) = compared.groups
    ours, theirs = group.runs["HierarchicalHyCal"], group.runs["NCM"]
    lead = lead_of_runs(ours[1:], theirs[:2])
    assert lead is not None
    assert lead.seeds == 1
    assert lead_of_runs(ours, ()) is None
    assert lead_of_runs(ours, [replace(run, right=()) for run in theirs]) is None, "older runs kept no hits"


def test_without_runs_to_compare_the_section_says_what_to_run(compared: Results) -> None:
    (group,) = compared.groups
    alone = Results((replace(group, runs={"NCM": group.runs["NCM"]}),))
    (section,) = leads(alone)
    assert isinstance(section.blocks[0], NotRun)


def test_only_methods_whose_scores_depend_on_domains_know_them() -> None:
    for label in ("HierarchicalHyCal", "HierarchicalHyCal+tuned", "HierarchicalHyCal[strength=2]"):
        assert knows_domains(label)
    for label in ("SLDA", "GDA+tuned", "ZeroShot", "HierarchicalHyCal+one-domain+tuned"):
        assert not knows_domains(label)
