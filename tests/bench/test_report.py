from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hycal.bench.cells import CellResult
from hycal.bench.efficiency import CASE, Measured, stored
from hycal.bench.figure_data import FigureData
from hycal.bench.report.blocks import FigureBlock, NotRun, ResultTable, Section, Words
from hycal.bench.report.results import Group, Results, Value, collect, column_of
from hycal.bench.report.sections import all_sections
from hycal.bench.report.sections.comparisons import comparisons
from hycal.bench.report.sections.findings import findings, last_accuracy
from hycal.bench.report.sections.setting import domain_tables, settings
from hycal.bench.report.sections.setting_figures import domain_curves
from hycal.bench.report.writers import render, with_closing

DOMAINS = ("aircraft", "artbench", "dtd", "eurosat", "galaxy", "mnist", "organ", "flowers")


def made_up_run(
    setting: str, order: str, method: str, value: float, domains: tuple[str, ...], zero: float
) -> CellResult:
    protocol = "X-TAIL" if setting == "x-tail" else "CIL"
    learned = np.ones((len(domains),) * 2, bool) if protocol == "X-TAIL" else np.tri(len(domains), dtype=bool)
    return CellResult(
        setting=setting,
        order=order,
        protocol=protocol,
        method=method,
        seed=0,
        domains=domains,
        samples=(500,) * len(domains),
        A=np.where(learned, value, np.nan),
        Z=np.full(len(domains), zero),
        classes={f"{name}/x": (5, value) for name in domains},
        shortages=0,
        nbytes=0,
        calibration_error=5.0,
    )


def made_up(
    setting: str,
    *methods: str,
    last: float = 60.0,
    order: str = "default",
    domains: tuple[str, ...] = DOMAINS,
    zero: float = float("nan"),
) -> Group:
    """A group whose accuracies are known: each method 5 points below the one before, one seed."""
    runs = {
        label: (made_up_run(setting, order, label, last - 5.0 * place, domains, zero),)
        for place, label in enumerate(methods)
    }
    return Group(setting, order, "X-TAIL" if setting == "x-tail" else "CIL", runs)


def answered(setting: str, **right: int) -> Group:
    """A group of two domains with 50 test images each, of which each method knows the first `right`."""
    group = made_up(setting, *right, domains=("a", "b"))
    runs = {
        method: (replace(run, A=np.tri(2) * 2.0 * known, right=(np.arange(50) < known,) * 2),)
        for (method, (run,)), known in zip(group.runs.items(), right.values(), strict=True)
    }
    return replace(group, runs=runs)


def blocks_of(results: Results, anchor: str) -> list[Words | ResultTable | FigureBlock | NotRun]:
    return [block for section in all_sections(results) if section.anchor == anchor for block in section.blocks]


def test_groups_are_settings_and_orders_with_all_seeds(results: Path) -> None:
    groups = collect(results).groups
    assert [group.name for group in groups] == ["small", "small@back"]
    assert groups[0].methods == ["HyCal", "NCM"], "studies have tables of their own"
    assert "HyCal[metric=cosine]" in groups[0].runs
    assert [run.seed for run in groups[0].runs["NCM"]] == [0, 1, 2]
    value = groups[0].value("NCM", "last")
    numbers = [column_of(run, "last") for run in groups[0].runs["NCM"]]
    assert value.mean == pytest.approx(np.mean(numbers))
    assert value.interval == pytest.approx(4.303 * np.std(numbers, ddof=1) / np.sqrt(3), rel=1e-3)


def test_published_numbers_stand_beside_ours_with_their_errors() -> None:
    group = made_up("balanced", "RanPAC:hycal-paper", "NCM")
    value = group.value("RanPAC:hycal-paper", "last")
    assert value.published is not None
    assert value.published.value == 67.64
    summary = domain_tables(group)[0]
    assert "The mean of the printed row is 66.66, not 67.64." in summary.notes
    for form in ("markdown", "latex", "html"):
        text = render(form, [Section("one", "One", (summary,))])
        assert "67.64" in text
        assert "66.66" in text
        assert "CIL" in text


def test_other_settings_have_no_published_number() -> None:
    assert made_up("xd8-balanced", "RanPAC").value("RanPAC", "last").published is None


def test_best_is_bold_and_second_underlined() -> None:
    table = domain_tables(made_up("xd8-balanced", "HyCal", "NCM"))[0]
    names = [column.name for column in table.columns]
    cells = {(name, column): v for name, row in table.rows for column, v in zip(names, row, strict=True)}
    assert cells["HyCal", "last"].rank == "best"
    assert cells["NCM", "last"].rank == "second"
    text = render("markdown", [Section("one", "One", (table,))])
    assert "**60.00**" in text
    assert "<u>55.00</u>" in text
    assert isinstance(cells["HyCal", "last"], Value)


def test_columns_without_any_number_are_left_out_and_the_caption_says_why() -> None:
    table = domain_tables(made_up("xd8-balanced", "HyCal", "NCM"))[0]
    assert not {"s_adapt", "s_cde"} & {column.name for column in table.columns}
    assert "s_last" in {column.name for column in table.columns}
    assert {len(values) for _, values in table.rows} == {len(table.columns)}
    why = "Left out: S_adapt, S_CDE; needed are text embeddings, for zero-shot accuracy, and tests after every step."
    assert table.caption.endswith(why)
    complete = domain_tables(made_up("xd8-balanced", "HyCal", zero=40.0))[0]
    assert {"s_adapt", "s_cde"} <= {column.name for column in complete.columns}
    assert "Left out" not in complete.caption


def test_the_findings_say_who_is_first_by_how_much_and_whether_by_chance() -> None:
    groups = (
        answered("one", SLDA=44, HierarchicalHyCal=45, NCM=30, HyCal=20),
        answered("two", HyCal=40, NCM=10),
        answered("three", NCM=25),
    )
    ((words, _),) = (section.blocks for section in findings(Results(groups)))
    assert isinstance(words, Words)
    lines = dict(words.lines)
    assert lines["Overall"] == (
        "Of 3 settings, HierarchicalHyCal is first in 1, HyCal is first in 1 and NCM is first in 1."
    )
    assert lines["one (CIL)"] == (
        "HierarchicalHyCal is first with 90.0% Last accuracy. It leads SLDA, the second, by 2.0 ± 2.8 points (may be "
        "chance, 1 seed). It leads HyCal by 50.0 ± 10.0 points (beyond chance, 1 seed). HyCal is 4th of 4 methods."
    )
    assert lines["two (CIL)"].endswith("It leads NCM, the second, by 60.0 ± 9.8 points (beyond chance, 1 seed).")
    assert lines["three (CIL)"] == "NCM alone was run: 50.0% Last accuracy."
    assert lines["Domains"].startswith("HierarchicalHyCal alone uses the domains")


def test_findings_of_runs_without_hits_claim_no_significance() -> None:
    words = findings(Results((made_up("one", "HyCal", "NCM"),)))[0].blocks[0]
    assert isinstance(words, Words)
    assert "by 5.0 points (the runs do not tell whether by chance)" in dict(words.lines)["one (CIL)"]


def test_the_picture_has_the_best_methods_on_top_and_fills_those_level_with_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[tuple[float, int, bool]] = []
    axes = pytest.importorskip("matplotlib.axes").Axes
    plain = axes.errorbar

    def errorbar(ax: object, x: float, y: float, **look: object) -> object:
        drawn.append((x, round(y), look["markerfacecolor"] != "none"))
        return plain(ax, x, y, **look)

    monkeypatch.setattr(axes, "errorbar", errorbar)
    groups = [answered("one", SLDA=44, HierarchicalHyCal=45, HyCal=20), answered("two", HyCal=30)]
    text = last_accuracy(groups)
    assert all(f">{name}<" in text for name in ("SLDA", "HierarchicalHyCal", "HyCal", "one (CIL)", "two (CIL)"))
    assert sorted(drawn) == [(40.0, 2, False), (60.0, 2, True), (88.0, 1, True), (90.0, 0, True)]


def test_what_is_not_run_stands_at_the_end_with_every_command() -> None:
    made = all_sections(Results((made_up("mine", "HyCal", "NCM"),)))
    *others, last = with_closing(made)
    assert last.title == "Not run yet"
    assert not [block for section in others for block in section.blocks if isinstance(block, NotRun)]
    assert all(section.blocks for section in others)
    wanted = [block for section in made for block in section.blocks if isinstance(block, NotRun)]
    assert list(last.blocks[1:]) == wanted
    assert others[0].anchor == "findings"


def test_equal_storage_is_said_once_and_a_difference_has_a_column() -> None:
    def table(bytes_of_ncm: float) -> ResultTable:
        measured = {"HyCal": Measured(0.25, int(stored("HyCal", CASE))), "NCM": Measured(0.0041, int(bytes_of_ncm))}
        (block,) = blocks_of(Results((made_up("mine", "HyCal"),), efficiency=measured), "efficiency")
        assert isinstance(block, ResultTable)
        return block

    same = table(stored("NCM", CASE))
    assert [column.name for column in same.columns] == ["MFLOP counted", "CPU ms measured"]
    assert "6.45 MiB, whatever the method" in same.caption
    assert [column.name for column in table(1e6).columns][2:] == ["MiB stored, measured"]
    text = render("markdown", [Section("one", "One", (same,))])
    assert "| 250 |" in text
    assert "| 4.10 |" in text


def test_every_table_of_results_has_the_calibration_error_less_being_better(results: Path) -> None:
    groups = collect(results).groups
    runs = groups[0].runs["NCM"]
    assert groups[0].value("NCM", "ece").mean == pytest.approx(np.mean([run.calibration_error for run in runs]))
    sections = [*settings(collect(results)), *comparisons(collect(results))]
    tables = [block for section in sections for block in section.blocks]
    summaries = [t for t in tables if isinstance(t, ResultTable) and t.columns[0].group is not None]
    ece = [next(column for column in table.columns if column.title == "ECE") for table in summaries]
    assert len(ece) >= 6
    assert {column.better for column in ece} == {"less"}


def test_zero_shot_has_a_row_with_the_published_numbers() -> None:
    last = domain_tables(made_up("balanced", "HyCal", zero=40.0))[1]
    name, values = last.rows[-1]
    assert name == "zero-shot, all names"
    printed = {c.name: v.published.value for c, v in zip(last.columns, values, strict=True) if v.published is not None}
    assert printed["last:aircraft"] == 23.91
    assert values[0].mean == 40.0
    assert all(row[0] != name for row in domain_tables(made_up("balanced", "HyCal"))[1].rows)


def test_the_two_domain_table_has_the_printed_zero_shot_row_under_every_head() -> None:
    parts = ("general", "balanced", "imbalanced")
    groups = tuple(made_up(f"two-domain-{part}", "HyCal", domains=("organ", "dtd"), zero=40.0) for part in parts)
    table = blocks_of(Results(groups), "two-domain")[0]
    assert isinstance(table, ResultTable)
    name, values = table.rows[-1]
    assert name == "zero-shot, all names"
    printed = [None if value.published is None else value.published.value for value in values]
    assert printed == [22.4, 44.3, None, 21.9, None] * 3


def test_the_two_domain_table_has_the_training_images_of_each() -> None:
    parts = {"general": (110, 470), "balanced": (220, 235), "imbalanced": (55, 470)}
    groups = []
    for part, samples in parts.items():
        group = made_up(f"two-domain-{part}", "HyCal", domains=("organ", "dtd"))
        (run,) = group.runs["HyCal"]
        groups.append(replace(group, runs={"HyCal": (replace(run, samples=samples),)}))
    table = blocks_of(Results(tuple(groups)), "two-domain")[0]
    assert isinstance(table, ResultTable)
    name, values = table.rows[-1]
    assert name == "training images"
    ours = [None if np.isnan(value.mean) else value.mean for value in values]
    assert ours == [110, 470, None, 360, None, 220, 235, None, 15, None, 55, 470, None, 415, None]
    printed = [value.published.value for value in values if value.published is not None]
    assert printed == [110, 470, 370, 220, 235, 15, 55, 470, 415], "the paper's first gap is wrong"
    assert "470 less 110 is 360." in table.notes
    assert "| training images | 110<br>paper 110 |" in render("markdown", [Section("one", "One", (table,))])


def test_the_released_samples_stand_beside_the_numbers_of_the_same_table() -> None:
    own, released = (
        [value.published for _, values in table.rows for value in values]
        for group in ("cross-scale", "cross-scale+released")
        for table in domain_tables(made_up(group, "HyCal", "NCM"))[:1]
    )
    assert own == released
    assert any(cell is not None and cell.table == "cross-scale" for cell in own)


def test_settings_stand_side_by_side_and_the_missing_one_says_what_to_run() -> None:
    results = Results((made_up("balanced", "HyCal", "KLDA:hycal-paper", zero=40.0), made_up("high-scale", "HyCal")))
    table, missing, *_ = blocks_of(results, "s-cde")
    assert isinstance(table, ResultTable)
    assert table.heads == [("Balanced", 4), ("High-scale", 4)]
    rows = dict(table.rows)
    assert rows["HyCal"][2].published is not None
    assert rows["HyCal"][2].published.value == 60.92
    assert np.isnan(rows["KLDA:hycal-paper"][4].mean), "not run there"
    assert isinstance(missing, NotRun)
    assert missing.commands == (
        'hycal bench run cross-scale --methods "study:paper" --features EMBEDDINGS --out RESULTS',
    )


@pytest.mark.parametrize(
    ("anchor", "settings", "columns", "published"),
    [
        ("two-domain", ["two-domain-general", "two-domain-balanced", "two-domain-imbalanced"], 15, 64.98),
        ("s-cde", ["balanced", "cross-scale", "high-scale"], 12, 60.92),
        ("fscil", ["fscil-5", "fscil-10", "fscil-15", "fscil-20"], 16, 60.82),
        ("backbone-and-x-tail", ["high-scale-datacomp", "x-tail"], 10, 77.44),
        ("random-orders", ["high-scale@I", "high-scale@II", "high-scale@III", "high-scale@IV"], 16, 53.47),
    ],
)
def test_every_table_of_the_paper_has_its_columns_and_published_numbers(
    anchor: str, settings: list[str], columns: int, published: float
) -> None:
    groups = []
    for name in settings:
        setting, _, order = name.partition("@")
        domains = ("organ", "dtd") if anchor == "two-domain" else DOMAINS
        groups.append(made_up(setting, "HyCal", order=order or "default", domains=domains, zero=40.0))
    tables = [block for block in blocks_of(Results(tuple(groups)), anchor) if isinstance(block, ResultTable)]
    table = next(block for block in tables if len(block.columns) == columns)
    assert published in [v.published.value for v in dict(table.rows)["HyCal"] if v.published is not None]
    for form in ("markdown", "latex", "html"):
        assert f"{published}" in render(form, [Section("one", "One", (table,))])


def test_ablation_and_fusion_compare_variants_of_one_method() -> None:
    metrics = [f"HyCal[metric={metric}]" for metric in ("average", "cosine", "mahalanobis")]
    group = made_up("balanced", "HyCal", *metrics, "HyCal[fusion=concat]", "NCM", zero=40.0)
    ablation, fusion = (blocks_of(Results((group,)), anchor)[0] for anchor in ("metrics", "fusion"))
    assert isinstance(ablation, ResultTable)
    assert isinstance(fusion, ResultTable)
    assert [name for name, _ in ablation.rows] == ["HyCal", *metrics]
    assert [name for name, _ in fusion.rows] == ["HyCal", "HyCal[fusion=concat]"]
    printed = {name: values[0].published for name, values in (*ablation.rows, *fusion.rows)}
    assert printed["HyCal[metric=cosine]"] is not None
    assert printed["HyCal[metric=cosine]"].value == 64.67
    assert printed["HyCal[fusion=concat]"] is not None
    assert printed["HyCal[fusion=concat]"].value == 70.25


def test_tuned_rows_stand_beside_the_untuned_ones_and_in_no_other_table() -> None:
    group = made_up("xd8-balanced", "HyCal", "HyCal+tuned", "NCM")
    table = blocks_of(Results((group,)), "tuned")[-2]
    assert isinstance(table, ResultTable)
    assert [name for name, _ in table.rows] == ["HyCal", "HyCal+tuned"]
    assert group.methods == ["HyCal", "NCM"]
    assert made_up("balanced", "HyCal+tuned").value("HyCal+tuned", "last").published is None


def test_without_results_every_table_and_figure_says_what_to_run() -> None:
    empty = Results((made_up("mine", "NCM"),))
    sections = {section.anchor: section for section in all_sections(empty)}
    for anchor in (
        "s-cde",
        "metrics",
        "tuned",
        "fusion",
        "random-orders",
        "two-domain",
        "fscil",
        "backbone-and-x-tail",
    ):
        assert all(isinstance(block, NotRun) for block in sections[anchor].blocks)
    for anchor in ("sensitivity", "examples", "cosine-mahalanobis", "prototypes", "missing-settings"):
        assert all(isinstance(block, NotRun) for block in sections[anchor].blocks)
    commands = [c for s in sections.values() for b in s.blocks if isinstance(b, NotRun) for c in b.commands]
    assert all(command.startswith("hycal bench ") and "--out RESULTS" in command for command in commands)
    assert [
        c.split(" --features ")[1].split()[0] for b in sections["backbone-and-x-tail"].blocks for c in b.commands
    ] == [
        "DATACOMP-EMBEDDINGS",
        "EMBEDDINGS",
    ]
    text = render("html", [sections[anchor] for anchor in ("s-cde", "fscil")])
    assert text.count('class="todo"') == 3


def test_each_domain_has_its_own_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    group = made_up("mine", "HyCal", "NCM", domains=("a", "b", "c"))
    text = domain_curves(group)
    assert all(f">{domain}<" in text for domain in group.domains)
    drawn: list[tuple[object, object]] = []
    figures = pytest.importorskip("matplotlib.axes")
    monkeypatch.setattr(figures.Axes, "plot", lambda ax, x, y, **look: drawn.append((list(x), y.tolist())))
    domain_curves(group)
    assert drawn[::2] == [([1, 2, 3], [60.0] * 3), ([2, 3], [60.0] * 2), ([3], [60.0])]


def test_example_images_are_in_the_page() -> None:
    shown = figure_data(examples={"organ": ["QQ==", "Qg=="], "<b>": ["QQ=="]})
    (figure,) = blocks_of(Results((made_up("mine", "HyCal"),), figures=(shown,)), "examples")
    assert isinstance(figure, FigureBlock)
    text = figure.draw()
    assert text.count('href="data:image/jpeg;base64,QQ=="') == 2
    assert 'viewBox="0 0 270 180"' in text, "so that it can shrink"
    assert "&lt;b&gt;" in text and "<b>" not in text


def test_the_ranks_of_both_measures_have_a_panel() -> None:
    results = Results((made_up("mine", "HyCal"),), figures=(figure_data(examples={}),))
    (figure,) = blocks_of(results, "cosine-mahalanobis")
    assert isinstance(figure, FigureBlock)
    text = figure.draw()
    assert "rank of the own class by cosine" in text
    assert "mathdefault" not in text, "powers of ten are plain numbers"


def figure_data(examples: dict[str, list[str]]) -> FigureData:
    ones = np.ones(2)
    right = np.array([[True, True, True], [True, False, True]])
    ranks = np.array([[1, 1], [1, 3]])
    counts = {"cosine mahalanobis dynamic": 1, "cosine dynamic": 1}
    return FigureData("mine", 0, ("a",), {}, ones, ones, ranks, right, counts, examples, {})
