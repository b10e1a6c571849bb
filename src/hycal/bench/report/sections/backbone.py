"""Another backbone (CLIP of DataComp), and X-TAIL, where classes to come are candidates by their names."""

from __future__ import annotations

from hycal.bench.report.blocks import Section
from hycal.bench.report.results import Results
from hycal.bench.report.tables import PAPER_METHODS, Part, combined

_PARTS = (
    Part("High-scale, DataComp", "high-scale-datacomp", ("last", "average", "s_cde", "ece"), "DATACOMP-EMBEDDINGS"),
    Part("X-TAIL", "x-tail", ("last", "average", "s_cde", "transfer", "average_x_tail", "ece")),
)
_CAPTION = (
    "Average is over the domains learned so far, as the paper's; Transfer, before a domain is learned, and the average "
    "over all cells are X-TAIL's own. Methods that cannot tell a class by its name have no Transfer."
)


def backbone(results: Results) -> list[Section]:
    """Return the section."""
    title = "DataComp and X-TAIL"
    return [Section("backbone-and-x-tail", title, tuple(combined(results, title, _CAPTION, _PARTS, run=PAPER_METHODS)))]
