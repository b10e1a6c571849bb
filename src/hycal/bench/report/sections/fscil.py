"""The same number of shots for every class: 5, 10, 15, 20."""

from __future__ import annotations

from hycal.bench.report.blocks import Section
from hycal.bench.report.results import Results
from hycal.bench.report.tables import PAPER_METHODS, Part, combined

_PARTS = [Part(f"{shots} shots", f"fscil-{shots}", ("last", "average", "s_cde", "ece")) for shots in (5, 10, 15, 20)]


def fscil(results: Results) -> list[Section]:
    """Return the section."""
    title = "FSCIL: 5, 10, 15 and 20 shots"
    return [Section("fscil", title, tuple(combined(results, title, "", _PARTS, run=PAPER_METHODS)))]
