"""What it costs to add 10 classes to 290, counted and measured."""

from __future__ import annotations

import numpy as np

from hycal.bench.efficiency import CASE, DENSE, count, stored
from hycal.bench.published import PublishedCell
from hycal.bench.report.blocks import Block, Column, NotRun, Section, make_table
from hycal.bench.report.results import Results, Value
from hycal.classifiers import METHODS

_OPERATIONS, _SECONDS, _STATE = "MFLOP counted", "CPU ms measured", "MiB stored, measured"
_PUBLISHED = {(DENSE, _OPERATIONS): 5400.0, ("PrimalRAIL", _OPERATIONS): 12000.0}
_CAPTION = (
    f"{CASE.added} classes of {CASE.shots} shots are added to {CASE.classes - CASE.added}; {CASE.width} dimensions, "
    f"random features {CASE.features} wide. Counted from the formulas, from learning to the first answer; a dense "
    "precision matrix for each class, as published, stands in the first row. Measured on one core of this machine. "
    "Every model of this package stores its samples and texts, so that deletion is exact: "
    f"{stored('HyCal', CASE) / 2**20:.2f} MiB, whatever the method. A dense matrix for each class takes "
    f"{stored(DENSE, CASE) / 2**20:.0f} MiB (paper 301)."
)


def efficiency(results: Results) -> list[Section]:
    """Return the section."""
    measured = [_SECONDS] if results.efficiency else []
    if any(found.state_bytes != stored(name, CASE) for name, found in results.efficiency.items()):
        measured.append(_STATE)
    columns = [Column(name) for name in (_OPERATIONS, *measured)]

    def value(method: str, column: Column) -> Value:
        printed = _PUBLISHED.get((method, column.name))
        cell = None if printed is None else PublishedCell("efficiency", "", method, column.name, printed, np.nan)
        number = _number(results, method, column.name)
        return Value(number, np.nan, 1, cell, digits=0 if number >= 100 else 2)

    title = "Adding 10 classes"
    blocks: list[Block] = [make_table(title, _CAPTION, columns, [DENSE, *METHODS], value)]
    if not measured:
        blocks.append(NotRun(title, "Not measured yet:", ("hycal bench efficiency --out RESULTS",)))
    return [Section("efficiency", "Efficiency", tuple(blocks))]


def _number(results: Results, method: str, column: str) -> float:
    if column == _OPERATIONS:
        return count(method, CASE) / 1e6
    if method not in results.efficiency:
        return float("nan")
    found = results.efficiency[method]
    return 1000.0 * found.seconds if column == _SECONDS else found.state_bytes / 2**20
