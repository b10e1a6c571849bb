"""Tables that put several settings side by side, and the commands for settings that have no results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hycal.bench.report.blocks import Block, Column, NotRun, Row, make_table
from hycal.bench.report.results import Group, Results, Value, table_place
from hycal.bench.settings import DEFAULT_ORDER, load_setting

#: How the names of the paper's settings begin, and those of the same settings of the bundled disciplines.
FAMILIES = {"the paper's data": "", "bundled xd8": "xd8-"}
IMBALANCES = {"Balanced": "balanced", "Cross-scale": "cross-scale", "High-scale": "high-scale"}
EMBEDDINGS = "EMBEDDINGS"
ExtraRow = Callable[[Group, str], Value]


@dataclass(frozen=True)
class Part:
    """Some columns of one setting."""

    head: str
    group: str  # name of its group: "balanced", "high-scale@II"
    columns: tuple[str, ...] = ("last", "average", "s_cde", "ece")
    embeddings: str = EMBEDDINGS  # name of the folder of its embeddings in commands


def combine(
    results: Results,
    title: str,
    caption: str,
    parts: Sequence[Part],
    *,
    belongs: Callable[[Group, str], bool],
    run: str = "",
    extra: Mapping[str, ExtraRow] | None = None,
) -> list[Block]:
    """Return the table of the parts that have results, and a note that says how to run the others.

    `belongs` says of a group and a method whether the table has it. `run` names the methods that the note asks for; see
    `run_command`. `extra` has rows below those of the methods, by their names, from a group and a column to the value;
    a row without any number of ours is left out.
    """
    found = {part: group for part in parts if (group := results.find(part.group)) is not None}
    groups = list(found.values())
    labels = sorted({label for group in groups for label in group.runs}, key=table_place)
    methods = [label for label in labels if any(belongs(group, label) and label in group.runs for group in groups)]
    absent = [part for part in parts if part not in found or not any(m in found[part].runs for m in methods)]
    blocks: list[Block] = []
    if methods:
        columns = [
            Column(name, part.head, found[part]) for part in parts if part not in absent for name in part.columns
        ]
        rows: list[Row] = [
            (name, tuple(value(_group(column), column.name) for column in columns))
            for name, value in (extra or {}).items()
        ]
        more = [row for row in rows if any(not np.isnan(value.mean) for value in row[1])]
        protocols = dict.fromkeys(group.protocol for group in groups)
        about = f"Protocol {', '.join(protocols)}. {caption}".strip()
        blocks.append(
            make_table(
                title, about, columns, methods, lambda method, column: _group(column).value(method, column.name), more
            )
        )
    if absent:
        reason = f"Not run yet for {', '.join(part.group for part in absent)}:" if methods else "Not run yet:"
        folders = dict.fromkeys(part.embeddings for part in absent)
        commands = (run_command([p.group for p in absent if p.embeddings == f], run, f) for f in folders)
        blocks.append(NotRun(title, reason, tuple(commands)))
    return blocks


def _group(column: Column) -> Group:
    assert column.group is not None
    return column.group


def run_command(names: Sequence[str], methods: str = "", embeddings: str = EMBEDDINGS) -> str:
    """Return the command that makes the results of groups with these names; they have the same orders.

    Without `methods` it names all methods for bundled embeddings, and the paper's for other data.

    >>> run_command(["high-scale@I", "high-scale@II"], "HyCal")
    'hycal bench run high-scale --orders "I II" --methods "HyCal" --features EMBEDDINGS --out RESULTS'
    """
    settings = dict.fromkeys(name.partition("@")[0] for name in names)
    orders = dict.fromkeys(name.partition("@")[2] or DEFAULT_ORDER for name in names)
    in_order = "" if list(orders) == [DEFAULT_ORDER] else f' --orders "{" ".join(orders)}"'
    bundled = all(load_setting(setting).source == "xd8" for setting in settings)
    named = methods or ("all" if bundled else "study:paper")
    source = "" if bundled else f" --features {embeddings}"
    return f'hycal bench run {" ".join(settings)}{in_order} --methods "{named}"{source} --out RESULTS'
