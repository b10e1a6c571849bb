"""Domain Gravity: flow, drift and pull of every method, before and after calibration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from hycal.bench import metrics
from hycal.bench.report.blocks import Block, Column, FigureBlock, NotRun, ResultTable, Section
from hycal.bench.report.drawing import drawing, name_points, style
from hycal.bench.report.results import Group, Results, Value
from hycal.bench.report.tables import run_command
from hycal.bench.settings import DEFAULT_ORDER
from hycal.gravity import CLAIMS, Gravity, pooled
from hycal.validation import Doubles

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
        FigureBlock(f"{group.name}: which domain takes whose images", _FLOW, partial(draw_flow, shown, group.name)),
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
        "the sign that the paper claims. docs/gravity.md defines every number."
    )
    return ResultTable(f"{group.name}: Domain Gravity", caption, tuple(columns), tuple(rows))


def before_and_after(measured: Mapping[str, Sequence[Gravity]]) -> list[Gravity]:
    """Return the pooled gravity before calibration, if a run shows it, and of the first method."""
    before = next((method for method in BEFORE if method in measured), None)
    first = next(method for method in measured if method != before or len(measured) == 1)
    return [pooled(measured[method]) for method in dict.fromkeys([before or first, first])]


def draw_flow(shown: Sequence[Gravity], name: str) -> str:
    """Draw which domain takes whose images, one matrix for each model; the diagonal is what a domain keeps."""
    out: list[str] = []
    worst = max(float(np.nanmax(_lost(one), initial=1e-6)) for one in shown)
    with drawing(f"flow/{name}", out, columns=len(shown), size=(1.0 + 5.0 * len(shown), 4.4)) as axes:
        for ax, one in zip(axes, shown, strict=True):
            ax.grid(visible=False)
            ax.imshow(_lost(one), cmap="Reds", vmin=0, vmax=worst)
            for (row, column), rate in np.ndenumerate(100 * one.flow.rates):
                if row == column or rate > 0:
                    colour = {} if row == column else {"color": "white" if rate > 60 * worst else "black"}
                    ax.text(column, row, f"{rate:.1f}", ha="center", va="center", fontsize=7, **colour)
            ax.set_xticks(range(len(one.domains)), one.domains, rotation=30)
            ax.set_yticks(range(len(one.domains)), one.domains)
            ax.set_xlabel("given to (%)")
            ax.set_title(one.method)
    return out[0]


def _lost(one: Gravity) -> Doubles:
    """Return the rates at which images cross, NaN (drawn as the page itself) on the diagonal and where none do."""
    rates = one.flow.rates
    lost: Doubles = np.where(np.eye(len(rates), dtype=bool) | (rates == 0), np.nan, rates)
    return lost


def draw_pull(shown: Sequence[Gravity], name: str) -> str:
    """Draw taken and pull against what the paper says drives them."""
    pairs = [("sample share", "taken"), ("samples per class", "pull"), ("visual entropy", "pull")]
    out: list[str] = []
    with drawing(f"pull/{name}", out, columns=len(pairs), size=(11.0, 3.8)) as axes:
        for ax, (against, of) in zip(axes, pairs, strict=True):
            for place, one in enumerate(shown):
                ax.scatter(one.columns[against], one.columns[of], s=24, label=one.method, linewidths=0, **style(place))
            ax.margins(x=0.15)  # room for the names
            name_points(ax, shown[-1].domains, *(shown[-1].columns[key] for key in (against, of)))
            ax.set_xlabel(against)
            ax.set_ylabel(of)
        axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return out[0]
