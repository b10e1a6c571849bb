"""Domain Gravity: flow, drift and pull of every method, before and after calibration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from hycal.bench import metrics
from hycal.bench.report.blocks import Block, Column, FigureBlock, NotRun, ResultTable, Section
from hycal.bench.report.results import Group, Results, Value
from hycal.bench.report.tables import run_command
from hycal.bench.settings import DEFAULT_ORDER
from hycal.gravity import CLAIMS, Gravity, pooled
from hycal.gravity.drawing import draw_flow, draw_pull

#: What stands for the state before calibration, in this order of preference.
BEFORE = ("HyCal[metric=cosine]", "NCM")
_FLOW = "Percent of the row's images that were given to a class of the column's domain, after the last step."
_PULL = "Each point is a domain. The paper's claim: rising in the first two panels, falling in the third."

#: What one run gives, averaged over its domains.
_NUMBERS: Mapping[str, Callable[[Gravity], float]] = {
    "crossing %": lambda one: 100 * one.flow.crossing,
    "captured %": lambda one: 100 * float(np.mean([drift.captured for drift in one.drifts])),
    "drifted %": lambda one: 100 * float(np.mean([drift.drifted for drift in one.drifts])),
    "gained %": lambda one: 100 * float(np.mean([drift.gained for drift in one.drifts])),
    "shift": lambda one: float(np.nanmean([drift.shift for drift in one.drifts])),
}


def gravity(results: Results) -> list[Section]:
    """Return the section."""
    groups = [group for group in results.groups if group.order == DEFAULT_ORDER and gravities_of(group)]
    blocks: list[Block] = [block for group in groups for block in _blocks(group)]
    if not blocks:
        blocks = [NotRun("Domain Gravity", "Not run yet:", (run_command(["xd8-high-scale"], "HyCal NCM"),))]
    return [Section("gravity", "Domain Gravity", tuple(blocks))]


def _blocks(group: Group) -> list[Block]:
    shown = before_and_after(gravities_of(group))
    return [
        gravity_table(group),
        FigureBlock(
            f"{group.name}: images classified into another domain", _FLOW, partial(draw_flow, shown, group.name)
        ),
        FigureBlock(f"{group.name}: pull, sample share, entropy", _PULL, partial(draw_pull, shown, group.name)),
    ]


def gravities_of(group: Group) -> dict[str, list[Gravity]]:
    """Return what the runs of each method measured; methods whose runs did not measure it are left out."""
    found = {method: [run.gravity for run in group.runs[method] if run.gravity is not None] for method in group.methods}
    return {method: measured for method, measured in found.items() if measured}


def gravity_table(group: Group) -> ResultTable:
    """Return how much crosses, how far domains move, and what the paper's claims come to, for every method."""
    rows = []
    for method, runs in gravities_of(group).items():
        numbers = [[of(one) for one in runs] for of in _NUMBERS.values()]
        found = [Value(float(np.mean(values)), metrics.interval(values), len(values)) for values in numbers]
        relations = pooled(runs).relations
        found += [Value(relations[pair].correlation, np.nan, len(runs)) for pair in CLAIMS]
        rows.append((method, tuple(found)))
    columns = [Column(name, "after the last step") for name in _NUMBERS]
    columns += [
        Column(f"{of}, {against} ({'+' if sign > 0 else '-'})", "ρ (claim)") for (of, against), sign in CLAIMS.items()
    ]
    caption = (
        "Images given to another domain; what company does to a domain (captured by others, drifted inside, gained, "
        "shift of its scores), mean over domains; and Spearman's correlations over domains, all seeds together, with "
        "the sign that the paper claims. docs/explanation/gravity.md defines every number."
    )
    return ResultTable(f"{group.name}: Domain Gravity", caption, tuple(columns), tuple(rows))


def before_and_after(measured: Mapping[str, Sequence[Gravity]]) -> list[Gravity]:
    """Return the pooled gravity before calibration, if a run shows it, and of the first method."""
    before = next((method for method in BEFORE if method in measured), None)
    first = next(method for method in measured if method != before or len(measured) == 1)
    return [pooled(measured[method]) for method in dict.fromkeys([before or first, first])]
