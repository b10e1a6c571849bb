"""Tables of figures in the documents, from what a command printed: docs/data/NAME.json has the command and its tables.

    python -m tools.tables              write every table of the documents from docs/data (`make tables`)
    python -m tools.tables --run NAME   run the command of docs/data/NAME.json, keep the tables that it prints, write
    ... --run NAME --printed FILE       the same with what it printed before, in a file

A table stands between two marks, so that it can be read in the repository without the site:

    <!-- table: NAME, TITLE -->         TITLE is that of the table, or how it begins
    <!-- table: end -->

`; columns: A, B` and `; rows: C, D` in the first mark show a part of it. A printed table is Markdown below a heading,
or lines of columns two spaces apart below a title. A test fails when a document and its data differ.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs" / "data"
_BLOCK = re.compile(r"(<!-- table: (?!end)(.+?) -->\n).*?(<!-- table: end -->)", re.DOTALL)


@dataclass(frozen=True)
class Table:
    """Figures as they were printed: the first column names the rows."""

    columns: list[str]
    rows: list[list[str]]

    def part(self, *, columns: Sequence[str] = (), rows: Sequence[str] = ()) -> Table:
        """Return some columns and rows, in that order; all of them where none is named."""
        places = [self.columns.index(name) for name in columns] or range(len(self.columns))
        named = {re.sub(r"[*]|</?u>", "", row[0]): row for row in self.rows}
        chosen = [named[name] for name in rows] or self.rows
        return Table([self.columns[place] for place in places], [[row[place] for place in places] for row in chosen])

    def markdown(self) -> str:
        """Return the table for a document."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def printed_tables(text: str) -> Iterator[tuple[str, Table]]:
    """Yield the title of each table in what a command printed, and the table.

    >>> text = "Cars: accuracy\\n              2     5\\nHyCal      44.2  58.2\\n"
    >>> [(title, table.columns, table.rows) for title, table in printed_tables(text)]
    [('Cars: accuracy', ['', '2', '5'], [['HyCal', '44.2', '58.2']])]
    """
    title = ""
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.splitlines() if line.strip()]
        marked = [line for line in lines if line.startswith("|")]
        if marked:
            cells = [[cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in marked]
            yield title, Table(cells[0], cells[2:])
        elif lines and lines[0].startswith("#"):
            title = lines[0].lstrip("# ")
        elif len(lines) > 1:
            cells = [re.split(r"\s{2,}", line.strip()) for line in lines[1:]]
            if table := _spaced([row for row in cells if len(row) > 1]):
                yield lines[0], table


def _spaced(rows: list[list[str]]) -> Table | None:
    """Return a table from lines of columns; the name of the first column may be missing, or all names."""
    if len(rows) < 2:
        return None
    width = max(map(len, rows))
    named = not any(re.match(r"[-+]?\d+\.\d", cell) for cell in rows[0])
    head, body = (rows[0], rows[1:]) if named else ([""] * width, rows)
    columns = ["", *head] if len(head) < width else head
    return Table(columns, [row + [""] * (width - len(row)) for row in body]) if len(columns) == width else None


def read(name: str) -> dict[str, Table]:
    """Return the tables of docs/data/NAME.json, by title."""
    kept = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return {title: Table(**table) for title, table in kept["tables"].items()}


def keep(name: str, command: str, tables: dict[str, Table]) -> None:
    """Write docs/data/NAME.json."""
    content = {"command": command, "tables": {title: asdict(table) for title, table in tables.items()}}
    text = json.dumps(content, indent=1, ensure_ascii=False)
    rows = re.sub(r"\[\s+([^\[\]]*?)\s+\]", lambda row: "[" + re.sub(r"\n\s+", " ", row[1]) + "]", text)
    (DATA / f"{name}.json").write_text(rows + "\n", encoding="utf-8")


def run(command: str) -> str:
    """Run a command in a shell with this Python, show what it prints, and return that."""
    printed = ""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    shell: dict[str, Any] = {"shell": True, "cwd": ROOT, "env": {**os.environ, "PATH": path}}
    with subprocess.Popen(command, **shell, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            sys.stdout.write(line)
            printed += line
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}. Nothing was written.")
    return printed


def rendered(text: str) -> str:
    """Return a document with each of its tables as the data is now."""
    return _BLOCK.sub(lambda block: f"{block[1]}{_find(block[2]).markdown()}{block[3]}", text)


def _find(mark: str) -> Table:
    """Return the table that a mark names: `NAME, TITLE; columns: A, B; rows: C`."""
    which, *parts = mark.split("; ")
    name, _, title = which.partition(", ")
    found = [table for whole, table in read(name).items() if whole.startswith(title)]
    if len(found) != 1:
        raise SystemExit(f"docs/data/{name}.json has {len(found)} tables that begin with {title!r}; expected one.")
    chosen = {key: value.split(", ") for key, _, value in (part.partition(": ") for part in parts)}
    return found[0].part(columns=chosen.get("columns", ()), rows=chosen.get("rows", ()))


def _merged(name: str, printed: dict[str, Table]) -> dict[str, Table]:
    """Return the tables that marks lead to: those that were printed, and the old ones where none was."""
    marks = [mark for path in documents() for _, mark, _ in _BLOCK.findall(path.read_text(encoding="utf-8"))]
    starts = {mark.split("; ")[0].partition(", ")[2] for mark in marks if mark.startswith(f"{name}, ")}
    new = {title: table for title, table in printed.items() if title.startswith(tuple(starts))}
    replaced = tuple(start for start in starts if any(title.startswith(start) for title in new))
    return {title: table for title, table in read(name).items() if not title.startswith(replaced)} | new


def documents() -> list[Path]:
    """Return the documents that may have tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main() -> None:
    """Write the tables, after a run of their command if that is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", metavar="NAME", choices=sorted(path.stem for path in DATA.glob("*.json")))
    parser.add_argument("--printed", type=Path, metavar="FILE", help="what the command of NAME printed")
    options = parser.parse_args()
    if options.run:
        command = json.loads((DATA / f"{options.run}.json").read_text(encoding="utf-8"))["command"]
        printed = options.printed.read_text(encoding="utf-8") if options.printed else run(command)
        keep(options.run, command, _merged(options.run, dict(printed_tables(printed))))
    for document in documents():
        before = document.read_text(encoding="utf-8")
        if (after := rendered(before)) != before:
            document.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
