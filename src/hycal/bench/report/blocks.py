"""Parts of a report: sections of tables, figures and notes on what is not run.

They are independent of the form in which `writers` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hycal.bench.report.results import LOWER_IS_BETTER, UNRANKED, Group, Value

TITLES = {
    "last": "Last",
    "average": "Average",
    "s_adapt": "S_adapt",
    "s_last": "S_last",
    "s_cde": "S_CDE",
    "forgetting": "Forgetting",
    "worst_forgetting": "Forgetting (from best)",
    "gap": "Gap",
    "ece": "ECE",
    "last:sigma": "σ",
    "average:sigma": "σ",
    "transfer": "Transfer",
    "average_x_tail": "Average (all cells)",
    "base": "Base",
    "novel": "Novel",
    "harmonic": "Harmonic mean",
    "backward": "Backward transfer",
    "forward": "Forward transfer",
    "lead": "Lead",
    "domains": "Domains",
}


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
        A column of `Group.value`, or any other word.
    head : str
        Written above several columns; "" for none.
    group : Group or None
        The runs that it shows.
    """

    name: str
    head: str = ""
    group: Group | None = field(default=None, compare=False)

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


Block = ResultTable | FigureBlock | NotRun


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
    """Return the table of `value` for every method and column, ranked; rows of `more` follow unranked."""
    by_column = [ranked(column, [value(method, column) for method in methods]) for column in columns]
    rows = zip(methods, zip(*by_column, strict=True), strict=True)
    return ResultTable(title, caption, tuple(columns), (*rows, *more))


def ranked(column: Column, values: Sequence[Value]) -> list[Value]:
    """Mark the best and the second best mean, rounded as they are printed; equal means share a mark."""
    known = {round(value.mean, 2) for value in values if not np.isnan(value.mean)}
    if column.better == "neither" or len(known) < 2:
        return list(values)
    places = sorted(known, reverse=column.better == "more")
    marks = {places[0]: "best", places[1]: "second"}
    return [replace(value, rank=marks.get(round(value.mean, 2), "")) for value in values]
