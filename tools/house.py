"""Draw the rooms of hycal and their imports from the code, into docs/explanation/architecture.md.

    python -m tools.house            print the picture and the table of rooms
    python -m tools.house --write    put them into docs/explanation/architecture.md, between the two marks

The layers come from the import contract in pyproject.toml, the arrows from the imports in `src`, the line of each room
from the docstring of its `__init__`. `make house` writes; a test fails when the document is not current.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "hycal"
DOCUMENT = ROOT / "docs" / "explanation" / "architecture.md"
BEGIN, END = "<!-- house: written by `make house` -->\n", "<!-- house: end -->"

Edges = Mapping[str, frozenset[str]]  # of each room, or module at the root, those that it imports


def layers() -> list[list[str]]:
    """Return the rooms and root modules of each layer of the import contract, the highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = settings["contracts"]
    return [[name.strip(" ()") for name in layer.split("|")] for layer in contract["layers"]]


def imports() -> Edges:
    """Return what each room and root module imports directly, by the code; "hycal.MODULE:NAME" is an import too."""
    graph = grimp.build_graph("hycal", cache_dir=None)
    rooms = sorted(name.partition(".")[2] for name in graph.find_children("hycal"))
    for room in rooms:
        graph.squash_module(f"hycal.{room}")
    edges = {}
    for room in rooms:
        found = {name.partition(".")[2] for name in graph.find_modules_directly_imported_by(f"hycal.{room}")}
        files = (SOURCE / room).rglob("*.py") if _is_room(room) else [SOURCE / f"{room}.py"]
        found.update(name for file in files for name in re.findall(r'"hycal\.(\w+)[\w.]*:\w+"', file.read_text()))
        edges[room] = frozenset(found - {"", room})
    return edges


def without_detours(edges: Edges) -> Edges:
    """Return the arrows that do not follow from others: no arrow stays where a longer way leads to the same room.

    >>> short = without_detours({"a": frozenset({"b", "c"}), "b": frozenset({"c"}), "c": frozenset()})
    >>> {room: sorted(imported) for room, imported in short.items()}
    {'a': ['b'], 'b': ['c'], 'c': []}
    """

    def reach(room: str) -> frozenset[str]:
        return edges[room].union(*(reach(imported) for imported in edges[room]))

    return {
        room: imported - frozenset[str]().union(*(reach(other) for other in imported))
        for room, imported in edges.items()
    }


def purpose(room: str) -> str:
    """Return the first paragraph of the docstring of a room or a root module."""
    path = SOURCE / room / "__init__.py" if _is_room(room) else SOURCE / f"{room}.py"
    tree = ast.parse(path.read_text())
    return " ".join((ast.get_docstring(tree) or "").split("\n\n")[0].split())


def diagram(edges: Edges) -> str:
    """Return a Mermaid graph: an arrow leads from a room to each room that it imports, detours left out."""
    rooms = [room for layer in layers() for room in layer]
    lines = [f"  {room}[{room}/]" if _is_room(room) else f"  {room}([{room}.py])" for room in rooms]
    short = without_detours(edges)
    lines += [f"  {room} --> {imported}" for room in rooms for imported in sorted(short[room])]
    return "\n".join(["```mermaid", "graph TD", *lines, "```", ""])


def table(edges: Edges) -> str:
    """Return one line for each room and root module: what it is for, and what it imports."""
    lines = ["| room | what lives there | imports |", "|---|---|---|"]
    for layer in layers():
        for room in layer:
            name = f"`{room}/`" if _is_room(room) else f"`{room}.py`"
            lines.append(f"| {name} | {purpose(room)} | {', '.join(sorted(edges[room])) or 'nothing'} |")
    return "\n".join([*lines, ""])


def _is_room(name: str) -> bool:
    return (SOURCE / name).is_dir()


def picture() -> str:
    """Return the part of the document that this command writes."""
    edges = imports()
    return f"{diagram(edges)}\n{table(edges)}"


def written(text: str) -> str:
    """Return the document with the picture as it is now."""
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(
            f"{DOCUMENT} lacks the marks {BEGIN.strip()!r} and {END!r}. Put them where the picture stands."
        )
    return f"{before}{BEGIN}{picture()}{END}{after}"


def main() -> None:
    """Print the picture, or write it."""
    parser = argparse.ArgumentParser(description="The rooms of hycal and their imports, drawn from the code.")
    parser.add_argument("--write", action="store_true", help="put the picture into docs/explanation/architecture.md")
    if parser.parse_args().write:
        DOCUMENT.write_text(written(DOCUMENT.read_text()))
    else:
        sys.stdout.write(picture())


if __name__ == "__main__":
    main()
