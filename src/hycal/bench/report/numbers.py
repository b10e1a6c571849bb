"""The numbers of a table as text: a mean with its interval, and the published number beside it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hycal.bench.report.blocks import ResultTable
from hycal.bench.report.results import Value
from hycal.escaping import tex_text

MISSING = "–"
#: How a form writes the best number of a column, the second, and a published number.
_MARKS = {
    "markdown": ("**{}**", "<u>{}</u>", "<br>{}"),
    "latex": (r"\textbf{{{}}}", r"\underline{{{}}}", " ({})"),
    "terminal": ("{}", "{}", " ({})"),
    "html": ("<b>{}</b>", "<u>{}</u>", '<br><span class="paper">{}</span>'),
}


def number(mean: float, interval: float, digits: int = 2) -> str:
    """Return a mean with its interval as text.

    >>> number(63.504, 0.731), number(63.5, float("nan")), number(float("nan"), float("nan"))
    ('63.50 ± 0.73', '63.50', '–')
    """
    if np.isnan(mean):
        return MISSING
    return f"{mean:.{digits}f}" if np.isnan(interval) else f"{mean:.{digits}f} ± {interval:.{digits}f}"


def cell_text(form: str, table: ResultTable, value: Value) -> str:
    """Return our number, marked by its rank, and the published one with the number of its note, as a form writes it."""
    best, second, published = _MARKS[form]
    ours = value.text or number(value.mean, value.interval, value.digits)
    text = {"best": best, "second": second}.get(value.rank, "{}").format(ours)
    if value.published is None:
        return text
    error = value.published.error
    note = f" [{table.notes.index(error) + 1}]" if error else ""
    theirs = number(value.published.value, value.published.interval, value.digits)
    return text + published.format(f"paper {theirs}{note}")


def latex_row(table: ResultTable, name: str, values: Sequence[Value]) -> str:
    """Return one row of a table in LaTeX, with its line end."""
    cells = (cell_text("latex", table, value).replace(" ± ", "$\\pm$").replace(MISSING, "--") for value in values)
    return " & ".join((tex_text(name), *cells)) + r" \\"
