"""Which leads are beyond chance: every method beside HierarchicalHyCal, by paired differences in Last accuracy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hycal.bench.leads import Lead, lead_of_runs
from hycal.bench.methods import knows_domains, parse_variant, shown_apart
from hycal.bench.report.blocks import Block, Column, NotRun, ResultTable, Section, make_table
from hycal.bench.report.results import Group, Results, Value
from hycal.bench.report.tables import run_command
from hycal.bench.settings import DEFAULT_ORDER

#: The method that leads are of: the first of these that was run.
REFERENCES = ("HierarchicalHyCal", "HyCal")
_CAPTION = (
    "Rows by their mean lead. Lead: of {reference} over the row, in points of Last accuracy, with its 95% interval; "
    "negative where the row is ahead, and chance where the interval holds zero. Both methods learn the same samples "
    "and answer the same images, so differences are taken image by image; the interval adds their variance over seeds "
    "(the draw of samples) and over test images, each comparison by itself. Domains: whether the scores of the method "
    "depend on the domains that classes are learned under."
)


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
            return _words("yes" if knows_domains(method) else "no")
        if column.name != "lead":
            return column.group.value(method, column.name)
        runs = column.group.runs
        return lead_value(lead_of_runs(runs.get(reference, ()), runs.get(method, ())) if method != reference else None)

    def place(method: str) -> float:
        """Return how far the method is behind the reference, over the groups that have both."""
        behind = [group.value(reference, "last").mean - group.value(method, "last").mean for group in groups.values()]
        return float(np.mean([gap for gap in behind if not np.isnan(gap)] or [np.inf]))

    caption = _CAPTION.format(reference=reference)
    return make_table(title, caption, columns, sorted(labels, key=place), value)


def _compared(label: str) -> bool:
    """Return whether a variant is compared: all but the parameter grids and ablations of HyCal."""
    variant = parse_variant(label)
    return variant.tuned or variant.one_domain or not shown_apart(label)


def _can_compare(group: Group) -> bool:
    with_hits = [label for label, runs in group.runs.items() if _compared(label) and any(run.right for run in runs)]
    return len(with_hits) > 1 and any(name in with_hits for name in REFERENCES)


def _words(text: str) -> Value:
    return Value(np.nan, np.nan, 0, text=text)


def lead_value(lead: Lead | None) -> Value:
    """Return a lead as a value of a table, with its verdict."""
    if lead is None:
        return Value(np.nan, np.nan, 0)
    chance = "" if lead.beyond_chance else ", chance"
    return Value(lead.mean, lead.interval, lead.seeds, text=f"{lead.mean:+.2f} ± {lead.interval:.2f}{chance}")
