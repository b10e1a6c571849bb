"""The paper's first table: a medical and a texture domain, with equal and unequal shots."""

from __future__ import annotations

from hycal.bench.report.blocks import Section
from hycal.bench.report.results import Results
from hycal.bench.report.tables import PAPER_METHODS, Part, combined

_COLUMNS = ("last:organ", "last:dtd", "last", "gap", "ece")
_PARTS = (
    Part("General (10 shots)", "two-domain-general", _COLUMNS),
    Part("Balanced (20 and 5 shots)", "two-domain-balanced", _COLUMNS),
    Part("Imbalanced (5 and 10 shots)", "two-domain-imbalanced", _COLUMNS),
)
_CAPTION = "Last accuracy in percent: organs (11 classes), textures (47 classes), their mean and gap (less is better)."


def two_domain(results: Results) -> list[Section]:
    """Return the section."""
    title = "Two domains (Table 1)"
    blocks = combined(results, title, _CAPTION, _PARTS, run=PAPER_METHODS, zero_shot=True)
    return [Section("two-domain", title, tuple(blocks))]
