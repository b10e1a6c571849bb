"""Methods with parameters by leave-one-out likelihood of what they learned, beside the same methods untuned."""

from __future__ import annotations

from dataclasses import replace

from hycal.bench.methods import parse_variant
from hycal.bench.report.blocks import Section
from hycal.bench.report.results import Group, Results
from hycal.bench.report.tables import FAMILIES, IMBALANCES, Part, combined

_CAPTION = "+tuned sets the parameters after each step, by training images alone; the row above is the method untuned."


def tuned(results: Results) -> list[Section]:
    """Return the section."""
    blocks = []
    for family, prefix in FAMILIES.items():
        parts = [Part(head, prefix + name, ("last", "average", "ece")) for head, name in IMBALANCES.items()]
        title = f"Tuned, {family}"
        blocks += combined(results, title, _CAPTION, parts, run="all study:tuned", belongs=_belongs)
    return [Section("tuned", "Tuned by leave-one-out likelihood", tuple(blocks))]


def _belongs(group: Group, method: str) -> bool:
    return replace(parse_variant(method), tuned=True).label in group.runs
