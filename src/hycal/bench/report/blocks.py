"""Parts of a report: sections of sentences, tables, figures and notes on what is not run; and the numbers as text.

Parts are independent of the form in which `writers` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

import numpy as np

from hycal.bench.report.definitions import DEFINITIONS
from hycal.bench.report.results import LOWER_IS_BETTER, UNRANKED, Group, Value
from hycal.escaping import tex_text

TITLES = {name: one.title for name, one in DEFINITIONS.items()}
MISSING = "–"
#: How a form writes the best number of a column, the second, and a published number.
_MARKS = {
    "markdown": ("**{}**", "<u>{}</u>", "<br>{}"),
    "latex": (r"\textbf{{{}}}", r"\underline{{{}}}", " ({})"),
    "terminal": ("{}", "{}", " ({})"),
    "html": ("<b>{}</b>", "<u>{}</u>", '<br><span class="paper">{}</span>'),
}


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str  # a column of `Group.value`, or any other word
    head: str = ""  # written above several columns; "" for none
    group: Group | None = field(default=None, compare=False)  # the runs that it shows

    @property
    def better(self) -> str:
        """Whether "more" or "less" of it is better, or "neither"."""
        if self.name in LOWER_IS_BETTER:
            return "less"
        return "neither" if self.name in UNRANKED or self.group is None else "more"

    @property
    def title(self) -> str:
        """The text above the column."""
        return TITLES.get(self.name, self.name.partition(":")[2] or self.name)

    @property
    def meaning(self) -> str:
        """What it means; "" where its title says it."""
        return DEFINITIONS[self.name].meaning if self.name in DEFINITIONS else ""


Row = tuple[str, tuple[Value, ...]]


@dataclass(frozen=True)
class ResultTable:
    """A table: one row per method, one column per number, best and second marked."""

    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @property
    def notes(self) -> list[str]:
        """Known errors of published numbers in the table, in the order in which they appear."""
        found = (v.published.error for _, values in self.rows for v in values if v.published and v.published.error)
        return list(dict.fromkeys(found))

    @property
    def heads(self) -> list[tuple[str, int]]:
        """Heads with the number of columns below each; empty if there are none."""
        runs: list[tuple[str, int]] = []
        for column in self.columns:
            if runs and runs[-1][0] == column.head:
                runs[-1] = (column.head, runs[-1][1] + 1)
            else:
                runs.append((column.head, 1))
        return [] if runs == [("", len(self.columns))] else runs


@dataclass(frozen=True)
class FigureBlock:
    """A figure. `draw` returns SVG text that takes its text colour from the page."""

    title: str
    caption: str
    draw: Callable[[], str]


@dataclass(frozen=True)
class NotRun:
    """A table or figure without results, and the commands that make them."""

    title: str
    reason: str
    commands: tuple[str, ...]


@dataclass(frozen=True)
class Words:
    """Sentences: each line has a term and what is said of it."""

    lines: tuple[tuple[str, str], ...]


Block = Words | ResultTable | FigureBlock | NotRun


@dataclass(frozen=True)
class Section:
    """A part of the report under one heading."""

    anchor: str
    title: str
    blocks: tuple[Block, ...]


def make_table(
    title: str,
    caption: str,
    columns: Sequence[Column],
    methods: Sequence[str],
    value: Callable[[str, Column], Value],
    more: Sequence[Row] = (),
) -> ResultTable:
    """Return the table of `value` for every method and column, ranked; rows of `more` follow unranked.

    Columns without any number are left out, and the caption says why.
    """
    by_column = [ranked(column, [value(method, column) for method in methods]) for column in columns]
    rows = [*zip(methods, zip(*by_column, strict=True), strict=True), *more]
    known = [any(map(_has_content, values)) for values in zip(*(values for _, values in rows), strict=True)]
    left_out = [column for column, shown in zip(columns, known, strict=True) if not shown]
    return ResultTable(
        title,
        " ".join([caption, *why_left_out(left_out)]),
        tuple(compress(columns, known)),
        tuple((name, tuple(compress(values, known))) for name, values in rows),
    )


def _has_content(value: Value) -> bool:
    return bool(value.text) or value.published is not None or not np.isnan(value.mean)


def why_left_out(columns: Sequence[Column]) -> list[str]:
    """Return a sentence for each reason why columns have no number.

    >>> why_left_out([Column("s_adapt"), Column("s_cde")])
    ['Left out: S_adapt, S_CDE; needed are text embeddings, for zero-shot accuracy, and tests after every step.']
    """
    by_reason: dict[str, dict[str, None]] = {}
    for column in columns:
        known = DEFINITIONS.get(column.name)
        by_reason.setdefault(known.absence if known else "no run has it", {})[column.title] = None
    return [f"Left out: {', '.join(titles)}; {reason}." for reason, titles in by_reason.items()]


def ranked(column: Column, values: Sequence[Value]) -> list[Value]:
    """Mark the best and the second best mean, rounded as they are printed; equal means share a mark."""
    known = {round(value.mean, 2) for value in values if not np.isnan(value.mean)}
    if column.better == "neither" or len(known) < 2:
        return list(values)
    places = sorted(known, reverse=column.better == "more")
    marks = {places[0]: "best", places[1]: "second"}
    return [replace(value, rank=marks.get(round(value.mean, 2), "")) for value in values]


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
