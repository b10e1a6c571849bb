"""Domain Gravity in the report: flow, drift and pull of every method, before and after calibration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hycal.bench import metrics
from hycal.bench.report.collect import Group, Value
from hycal.bench.report.drawing import COLOURS, INK, MARKERS, figure
from hycal.bench.report.tables import ResultTable
from hycal.gravity import CLAIMS, Gravity, pooled
from hycal.validation import Doubles

#: What stands for the state before calibration, in this order of preference.
BEFORE = ("HyCal[metric=cosine]", "NCM")

#: What one run gives, averaged over its domains.
_NUMBERS: Mapping[str, Callable[[Gravity], float]] = {
    "crossing %": lambda one: 100 * one.flow.crossing,
    "captured %": lambda one: 100 * float(np.mean([drift.captured for drift in one.drifts])),
    "drifted %": lambda one: 100 * float(np.mean([drift.drifted for drift in one.drifts])),
    "gained %": lambda one: 100 * float(np.mean([drift.gained for drift in one.drifts])),
    "shift": lambda one: float(np.nanmean([drift.shift for drift in one.drifts])),
}


def gravities_of(group: Group) -> dict[str, list[Gravity]]:
    """Return what the runs of each method measured; methods whose runs did not measure it are left out."""
    found = {method: [run.gravity for run in runs if run.gravity is not None] for method, runs in group.runs.items()}
    return {method: measured for method, measured in found.items() if measured}


def gravity_tables(group: Group) -> list[ResultTable]:
    """Return the table of a group: how much crosses, how far domains move, and what the paper's claims come to."""
    measured = gravities_of(group)
    if not measured:
        return []
    pairs = list(CLAIMS)
    rows = []
    for method, runs in measured.items():
        numbers = [[of(one) for one in runs] for of in _NUMBERS.values()]
        relations = pooled(runs).relations
        found = [Value(float(np.mean(values)), metrics.interval(values), len(values)) for values in numbers]
        found += [Value(relations[pair].correlation, np.nan, len(runs)) for pair in pairs]
        rows.append((method, tuple(found)))
    claims = "; ".join(f"{of} with {against} {'+' if sign > 0 else '-'}" for (of, against), sign in CLAIMS.items())
    caption = (
        "Images given to another domain after the last step; what company does to a domain (captured by others, "
        "drifted inside, gained, shift of its scores), mean over domains; and rank correlations over domains, all "
        f"seeds together. The paper claims: {claims}."
    )
    columns = (*_NUMBERS, *(f"ρ {of}, {against}" for of, against in pairs))
    return [
        ResultTable(f"{group.name}: Domain Gravity", caption, tuple(f"gravity:{name}" for name in columns), tuple(rows))
    ]


def before_and_after(measured: Mapping[str, Sequence[Gravity]]) -> list[Gravity]:
    """Return the pooled gravity before calibration, if a run shows it, and of the first method."""
    before = next((method for method in BEFORE if method in measured), None)
    first = next(method for method in measured if method != before or len(measured) == 1)
    return [pooled(measured[method]) for method in dict.fromkeys([before or first, first])]


def _of_group(draw: Callable[[Sequence[Gravity], str], str]) -> Callable[[Group], str]:
    return lambda group: draw(before_and_after(gravities_of(group)), group.name)


def draw_flow(shown: Sequence[Gravity], name: str) -> str:
    """Draw which domain takes whose images, one matrix for each model; the diagonal is what a domain keeps."""
    out: list[str] = []
    worst = max(float(np.nanmax(_lost(one), initial=1e-6)) for one in shown)
    with figure(f"flow/{name}", out, panels=len(shown), size=(1.0 + 4.2 * len(shown), 4.4)) as axes:
        for ax, one in zip(axes, shown, strict=True):
            ax.grid(visible=False)
            ax.imshow(_lost(one), cmap="Reds", vmin=0, vmax=worst)
            for (row, column), rate in np.ndenumerate(100 * one.flow.rates):
                if row == column or rate > 0:
                    colour = INK if row == column else "white" if rate > 60 * worst else "black"
                    ax.text(column, row, f"{rate:.1f}", ha="center", va="center", fontsize=6.5, color=colour)
            ax.set_xticks(range(len(one.domains)), one.domains, rotation=45)
            ax.set_yticks(range(len(one.domains)), one.domains)
            ax.set_xlabel("given to (% of the row's images)")
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
    with figure(f"pull/{name}", out, panels=len(pairs), size=(10.0, 3.4)) as axes:
        for ax, (against, of) in zip(axes, pairs, strict=True):
            for place, one in enumerate(shown):
                style = {"color": COLOURS[place], "marker": MARKERS[place]}
                ax.scatter(one.columns[against], one.columns[of], s=22, label=one.method, linewidths=0, **style)
            for domain, x, y in zip(shown[-1].domains, *(shown[-1].columns[key] for key in (against, of)), strict=True):
                if np.isfinite([x, y]).all():
                    ax.annotate(domain, (x, y), xytext=(3, 3), textcoords="offset points", fontsize=6)
            ax.set_xlabel(against)
            ax.set_ylabel(of)
        axes[0].legend(fontsize=7, framealpha=0.0)
    return out[0]


#: Figures of a group that has gravity, by caption.
GRAVITY_FIGURES: Mapping[str, Callable[[Group], str]] = {
    "Which domain takes whose images, after the last step": _of_group(draw_flow),
    "Pull against sample share and visual entropy": _of_group(draw_pull),
}
