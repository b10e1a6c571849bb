"""Adaptation, retention and their harmonic mean, scarce domains counting more, over the three imbalances."""

from __future__ import annotations

from hycal.bench.report.blocks import Section
from hycal.bench.report.results import Results
from hycal.bench.report.tables import FAMILIES, IMBALANCES, PAPER_METHODS, Part, combined

_CAPTION = "S_adapt and S_CDE need zero-shot accuracy: without text embeddings they are missing."


def scarcity(results: Results) -> list[Section]:
    """Return the section."""
    blocks = []
    for family, prefix in FAMILIES.items():
        parts = [Part(head, prefix + name, ("s_adapt", "s_last", "s_cde", "ece")) for head, name in IMBALANCES.items()]
        title = f"S_CDE, {family}"
        blocks += combined(results, title, _CAPTION, parts, run="all" if prefix else PAPER_METHODS)
    return [Section("s-cde", "S_CDE over the three settings", tuple(blocks))]
