"""The findings: which method is first in each setting, by how much, whether that is beyond chance, and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from hycal.bench.leads import Lead, lead_of_runs
from hycal.bench.methods import knows_domains
from hycal.bench.report.blocks import FigureBlock, Section, Words
from hycal.bench.report.results import Group, Results, table_place
from hycal.bench.settings import DEFAULT_ORDER
from hycal.gravity.drawing import drawing, style

PAPER = "HyCal"
_CAPTION = (
    "Last accuracy, mean over seeds with its 95% interval; the best methods on top. Filled: first in its setting, or "
    "not behind the first beyond chance. Hollow: behind it beyond chance, or by runs that do not tell. Methods "
    "are compared image by image on the same samples, so a difference may be beyond chance though intervals overlap."
)


def findings(results: Results) -> list[Section]:
    """Return the section; there is none without a method to speak of."""
    groups = [group for group in results.groups if group.order == DEFAULT_ORDER and group.methods]
    if not groups:
        return []
    lines = [(heading(group), " ".join(_sentences(group))) for group in groups]
    if len(groups) > 1:
        lines.insert(0, ("Overall", _overall(groups)))
    told = [method for method in _ordered(groups) if knows_domains(method)]
    if told:
        lines.append(("Domains", f"{_listed(told)} {_uses(told)} the domains that classes are learned under."))
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
    return f"by {lead.mean:.1f} ± {lead.interval:.1f} points ({_verdict(lead)}, {seeds})"


def _verdict(lead: Lead) -> str:
    return "beyond chance" if lead.beyond_chance else "may be chance"


def _overall(groups: Sequence[Group]) -> str:
    firsts = [ranking(group)[0] for group in groups]
    by_method = sorted(dict.fromkeys(firsts), key=lambda method: -firsts.count(method))
    return f"Of {len(groups)} settings, {_listed([f'{name} is first in {firsts.count(name)}' for name in by_method])}."


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _uses(methods: Sequence[str]) -> str:
    return "alone uses" if len(methods) == 1 else "alone use"


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
