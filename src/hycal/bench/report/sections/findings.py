"""The findings: which method is first in each setting, and which leads are beyond chance, by paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from hycal.bench.leads import Lead, lead_of_runs
from hycal.bench.methods import knows_domains, parse_variant, shown_apart
from hycal.bench.report.blocks import Block, Column, FigureBlock, NotRun, ResultTable, Section, Words, make_table
from hycal.bench.report.results import Group, Results, Value, table_place
from hycal.bench.report.tables import run_command
from hycal.bench.settings import DEFAULT_ORDER
from hycal.gravity.drawing import drawing, style

PAPER = "HyCal"
_CAPTION = (
    "Last accuracy, mean over seeds with its 95% interval; the best methods on top. Filled: first in its setting, or "
    "not behind the first beyond chance. Hollow: behind it beyond chance, or by runs that do not tell. Methods "
    "are compared image by image on the same samples, so a difference may be beyond chance though intervals overlap."
)

#: The method that leads are of: the first of these that was run.
REFERENCES = ("HierarchicalHyCal", "HyCal")
_LEADS = (
    "Rows by their mean lead. Lead: of {reference} over the row, in points of Last accuracy, with its 95% interval; "
    "negative where the row is ahead, and chance where the interval holds zero. Both methods learn the same samples "
    "and answer the same images, so differences are taken image by image; the interval adds their variance over seeds "
    "(the draw of samples) and over test images, each comparison by itself. Domains: whether the scores of the method "
    "depend on the domains that classes are learned under."
)


def findings(results: Results) -> list[Section]:
    """Return the section; there is none without a method to speak of."""
    groups = [group for group in results.groups if group.order == DEFAULT_ORDER and group.methods]
    if not groups:
        return []
    lines = [(heading(group), " ".join(_sentences(group))) for group in groups]
    if len(groups) > 1:
        lines.insert(0, ("Overall", _overall(groups)))
    knowing = [method for method in _ordered(groups) if knows_domains(method)]
    if knowing:
        uses = "uses" if len(knowing) == 1 else "use"
        lines.append(("Domains", f"{_listed(knowing)} alone {uses} the domains that classes are learned under."))
    picture = FigureBlock("Last accuracy of every method in every setting", _CAPTION, partial(last_accuracy, groups))
    return [Section("findings", "Findings", (Words(tuple(lines)), picture))]


def heading(group: Group) -> str:
    """Return the name of a group, with its protocol."""
    return f"{group.name} ({group.protocol})"


def ranking(group: Group) -> list[str]:
    """Return the methods of a group, the highest Last accuracy first."""
    return sorted(group.methods, key=lambda method: -group.value(method, "last").mean)


def _sentences(group: Group) -> list[str]:
    first, *others = ranking(group)
    number = _last(group, first)
    if not others:
        return [f"{first} alone was run: {number:.1f}% Last accuracy."]
    second = others[0]
    found = [
        f"{first} is first with {number:.1f}% Last accuracy.",
        f"It leads {second}, the second, {_by(group, first, second)}.",
    ]
    if PAPER in others[1:]:
        found.append(f"It leads {PAPER} {_by(group, first, PAPER)}.")
    if PAPER in others:
        found.append(f"{PAPER} is {_ordinal(others.index(PAPER) + 2)} of {len(others) + 1} methods.")
    return found


def _by(group: Group, first: str, other: str) -> str:
    """Return by how much one method leads another, and whether chance explains it."""
    lead = lead_of_runs(group.runs[first], group.runs[other])
    if lead is None:
        gap = _last(group, first) - _last(group, other)
        return f"by {gap:.1f} points (the runs do not tell whether by chance)"
    seeds = f"{lead.seeds} seed{'s' if lead.seeds != 1 else ''}"
    verdict = "beyond chance" if lead.beyond_chance else "may be chance"
    return f"by {lead.mean:.1f} ± {lead.interval:.1f} points ({verdict}, {seeds})"


def _overall(groups: Sequence[Group]) -> str:
    firsts = [ranking(group)[0] for group in groups]
    by_method = sorted(dict.fromkeys(firsts), key=lambda method: -firsts.count(method))
    return f"Of {len(groups)} settings, {_listed([f'{name} is first in {firsts.count(name)}' for name in by_method])}."


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _ordinal(place: int) -> str:
    """Return a place in words.

    >>> [_ordinal(place) for place in (2, 3, 4, 11, 21)]
    ['2nd', '3rd', '4th', '11th', '21st']
    """
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def _ordered(groups: Sequence[Group]) -> list[str]:
    """Return all methods, the least behind the first of their settings on average first."""

    def behind(method: str) -> float:
        having = [group for group in groups if method in group.methods]
        return float(np.mean([_last(group, ranking(group)[0]) - _last(group, method) for group in having]))

    methods = {method for group in groups for method in group.methods}
    return sorted(sorted(methods, key=table_place), key=behind)


def _last(group: Group, method: str) -> float:
    return group.value(method, "last").mean


def last_accuracy(groups: Sequence[Group]) -> str:
    """Draw a line for each method with a dot for each setting."""
    methods, out = _ordered(groups), list[str]()
    height = 1.2 + len(methods) * (0.22 + 0.09 * len(groups))
    with drawing("findings", out, size=(6.6, height)) as (ax,):
        for place, group in enumerate(groups):
            first, look = ranking(group)[0], style(place)
            shift = 0.7 * ((place + 0.5) / len(groups) - 0.5)
            for method in group.methods:
                value = group.value(method, "last")
                ax.errorbar(
                    value.mean,
                    methods.index(method) + shift,
                    xerr=None if np.isnan(value.interval) else value.interval,
                    markerfacecolor=look["color"] if _level(group, first, method) else "none",
                    markersize=5,
                    linewidth=1.1,
                    **look,
                )
            ax.scatter([], [], label=heading(group), s=24, linewidths=0, **look)
        ax.set_yticks(range(len(methods)), methods)
        ax.set_ylim(len(methods) - 0.5, -0.5)
        ax.set_xlabel("Last accuracy (%)")
        ax.figure.legend(loc="outside lower center", ncols=min(3, len(groups)), fontsize=8, frameon=False)
    return out[0]


def _level(group: Group, first: str, method: str) -> bool:
    """Return whether a method is the first, or not behind it beyond chance."""
    lead = lead_of_runs(group.runs[first], group.runs[method])
    return method == first or (lead is not None and not lead.beyond_chance)


def leads(results: Results) -> list[Section]:
    """Return the section: a table for each setting in its own order that has runs to compare."""
    shown = [group for group in results.groups if group.order == DEFAULT_ORDER and _can_compare(group)]
    blocks: list[Block] = [lead_table(f"{group.name}: leads", {"": group}) for group in shown]
    if not blocks:
        blocks = [NotRun("Leads", "Not run yet:", (run_command(["xd8-high-scale"], "HierarchicalHyCal HyCal NCM"),))]
    return [Section("leads", "Which leads are beyond chance", tuple(blocks))]


def lead_table(title: str, groups: Mapping[str, Group]) -> ResultTable:
    """Return the table of groups side by side, by the words above their columns; the best rows come first."""
    labels = dict.fromkeys(label for group in groups.values() for label in group.runs if _compared(label))
    reference = next(name for name in REFERENCES if name in labels)
    columns = [Column("domains")]
    columns += [Column(name, head, group) for head, group in groups.items() for name in ("last", "lead", "ece")]

    def value(method: str, column: Column) -> Value:
        if column.group is None:
            return Value(np.nan, np.nan, 0, text="yes" if knows_domains(method) else "no")
        if column.name != "lead":
            return column.group.value(method, column.name)
        runs = column.group.runs
        return lead_value(lead_of_runs(runs.get(reference, ()), runs.get(method, ())) if method != reference else None)

    def place(method: str) -> float:
        """Return how far the method is behind the reference, over the groups that have both."""
        behind = [group.value(reference, "last").mean - group.value(method, "last").mean for group in groups.values()]
        return float(np.mean([gap for gap in behind if not np.isnan(gap)] or [np.inf]))

    caption = _LEADS.format(reference=reference)
    return make_table(title, caption, columns, sorted(labels, key=place), value)


def _compared(label: str) -> bool:
    """Return whether a variant is compared: all but the parameter grids and ablations of HyCal."""
    variant = parse_variant(label)
    return variant.tuned or variant.one_domain or not shown_apart(label)


def _can_compare(group: Group) -> bool:
    with_hits = [label for label, runs in group.runs.items() if _compared(label) and any(run.right for run in runs)]
    return len(with_hits) > 1 and any(name in with_hits for name in REFERENCES)


def lead_value(lead: Lead | None) -> Value:
    """Return a lead as a value of a table, with its verdict."""
    if lead is None:
        return Value(np.nan, np.nan, 0)
    chance = "" if lead.beyond_chance else ", chance"
    return Value(lead.mean, lead.interval, lead.seeds, text=f"{lead.mean:+.2f} ± {lead.interval:.2f}{chance}")
