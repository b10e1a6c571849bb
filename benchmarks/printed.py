"""A table that a benchmark prints row by row, in Markdown: `python -m tools.tables` keeps it for the documents."""

from __future__ import annotations

from hycal.escaping import markdown_cell

_NAME = 20  # width of the names of most rows


class PrintedTable:
    """Print the title and the columns of a table, then each row as soon as it is measured.

    >>> table = PrintedTable("Seconds, two runs", "method", "learn")
    <BLANKLINE>
    ### Seconds, two runs
    <BLANKLINE>
    | method               | learn |
    | -------------------- | ----- |
    >>> table.row("HyCal", "1.2")
    | HyCal                |   1.2 |
    """

    def __init__(self, title: str, *columns: str) -> None:
        self._widths = [max(len(column), _NAME if place == 0 else 3) for place, column in enumerate(columns)]
        print(f"\n### {title}\n")
        self.row(*columns)
        self.row(*("-" * width for width in self._widths))

    def row(self, name: str, *cells: str) -> None:
        """Print a row: its name, and as many cells as there are other columns."""
        first, *others = (markdown_cell(cell) for cell in (name, *cells))
        padded = [cell.rjust(width) for cell, width in zip(others, self._widths[1:], strict=True)]
        print("| " + " | ".join([first.ljust(self._widths[0]), *padded]) + " |", flush=True)
