"""What it costs to add 10 classes to 290, counted and measured."""

from __future__ import annotations

import numpy as np

from hycal.bench.efficiency import CASE, DENSE, count, stored
from hycal.bench.published import PublishedCell
from hycal.bench.report.blocks import Block, Column, NotRun, Section, make_table
from hycal.bench.report.results import Results, Value
from hycal.classifiers import METHODS

_OPERATIONS, _STORAGE = "MFLOP counted", "MiB stored, counted"
_SECONDS, _STATE = "CPU ms measured", "MiB stored, measured"
_PUBLISHED = {(DENSE, _OPERATIONS): 5400.0, ("PrimalRAIL", _OPERATIONS): 12000.0, (DENSE, _STORAGE): 301.0}
_CAPTION = (
    f"{CASE.added} classes of {CASE.shots} shots are added to {CASE.classes - CASE.added}; {CASE.width} dimensions, "
    f"random features {CASE.features} wide. Counted from the formulas, from learning to the first answer; a dense "
    "precision matrix for each class, as published, stands in the first row. Measured on one core of this machine. The "
    "models of this package keep their samples, so that deletion is exact."
)


def efficiency(results: Results) -> list[Section]:
    """Return the section."""
    measured = (_SECONDS, _STATE) if results.efficiency else ()
    columns = [Column(name) for name in (_OPERATIONS, _STORAGE, *measured)]

    def value(method: str, column: Column) -> Value:
        printed = _PUBLISHED.get((method, column.name))
        cell = None if printed is None else PublishedCell("efficiency", "", method, column.name, printed, np.nan)
        return Value(_number(results, method, column.name), np.nan, 1, cell)

    title = "Adding 10 classes"
    blocks: list[Block] = [make_table(title, _CAPTION, columns, [DENSE, *METHODS], value)]
    if not measured:
        blocks.append(NotRun(title, "Not measured yet:", ("hycal bench efficiency --out RESULTS",)))
    return [Section("efficiency", "Efficiency", tuple(blocks))]


def _number(results: Results, method: str, column: str) -> float:
    if column == _OPERATIONS:
        return count(method, CASE) / 1e6
    if column == _STORAGE:
        return stored(method, CASE) / 2**20
    if method not in results.efficiency:
        return float("nan")
    found = results.efficiency[method]
    return 1000.0 * found.seconds if column == _SECONDS else found.state_bytes / 2**20
