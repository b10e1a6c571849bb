"""The sections of the report. A section is a function from results to sections: a file here and a line in `SECTIONS`.

A section that only puts settings side by side is data: an entry of `comparisons.COMPARISONS`, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

from hycal.bench.report.blocks import Section
from hycal.bench.report.results import Results
from hycal.bench.report.sections.comparisons import comparisons
from hycal.bench.report.sections.embeddings import embeddings
from hycal.bench.report.sections.findings import findings, leads
from hycal.bench.report.sections.gravity import gravity
from hycal.bench.report.sections.practice import efficiency, practice
from hycal.bench.report.sections.sensitivity import sensitivity
from hycal.bench.report.sections.setting import settings

#: In the order of the page.
SECTIONS: tuple[Callable[[Results], list[Section]], ...] = (
    findings,
    settings,
    leads,
    practice,
    comparisons,
    efficiency,
    sensitivity,
    embeddings,
    gravity,
)


def all_sections(results: Results) -> list[Section]:
    """Return every section of a report."""
    return [section for make in SECTIONS for section in make(results)]
