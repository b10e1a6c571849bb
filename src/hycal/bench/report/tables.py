"""Tables that put several settings side by side, and what to run where one of them has no results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hycal.bench.report.blocks import Block, Column, NotRun, Row, make_table
from hycal.bench.report.results import Group, Results, Value, table_place
from hycal.bench.settings import DEFAULT_ORDER, load_setting

#: Settings of the paper, and the same for the bundled disciplines.
FAMILIES = {"the paper's data": "", "bundled xd8": "xd8-"}
IMBALANCES = {"Balanced": "balanced", "Cross-scale": "cross-scale", "High-scale": "high-scale"}
PAPER_METHODS = "study:paper"
EMBEDDINGS = "EMBEDDINGS"


@dataclass(frozen=True)
class Part:
    """Some columns of one setting.

    Attributes
    ----------
    head : str
    group : str
        Name of its group: "balanced", "high-scale@II".
    columns : tuple of str
    embeddings : str
        What a command calls the folder of its embeddings.
    """

    head: str
    group: str
    columns: tuple[str, ...]
    embeddings: str = EMBEDDINGS


def run_command(names: Sequence[str], methods: str, embeddings: str = EMBEDDINGS) -> str:
    """Return the command that makes the results of groups with these names; they have the same orders.

    >>> run_command(["high-scale@I", "high-scale@II"], "HyCal")
    'hycal bench run high-scale --orders "I II" --methods "HyCal" --embeddings EMBEDDINGS --out RESULTS'
    """
    settings = dict.fromkeys(name.partition("@")[0] for name in names)
    orders = dict.fromkeys(name.partition("@")[2] or DEFAULT_ORDER for name in names)
    in_order = "" if list(orders) == [DEFAULT_ORDER] else f' --orders "{" ".join(orders)}"'
    bundled = all(load_setting(setting).source == "xd8" for setting in settings)
    source = "" if bundled else f" --embeddings {embeddings}"
    return f'hycal bench run {" ".join(settings)}{in_order} --methods "{methods}"{source} --out RESULTS'


def combined(
    results: Results,
    title: str,
    caption: str,
    parts: Sequence[Part],
    *,
    run: str,
    belongs: Callable[[Group, str], bool] = lambda group, method: method in group.methods,
    zero_shot: bool = False,
) -> list[Block]:
    """Return the table of the parts that have results, and a note that says how to run the others.

    Parameters
    ----------
    run : str
        Methods that the note asks for.
    belongs : callable
        Says of a group and a method whether the table has it.
    zero_shot : bool
        Whether a last row shows zero-shot accuracy.
    """
    found = {part: group for part in parts if (group := results.find(part.group)) is not None}
    methods = [m for m in _ordered(found.values()) if any(belongs(g, m) and m in g.runs for g in found.values())]
    absent = [part for part in parts if part not in found or not any(m in found[part].runs for m in methods)]
    blocks: list[Block] = []
    if methods:
        columns = [
            Column(name, part.head, found[part]) for part in parts if part not in absent for name in part.columns
        ]
        more: list[Row] = []
        if zero_shot and any(group.has_text for group in found.values()):
            more = [("zero-shot, all names", tuple(_group(column).zero_shot(column.name) for column in columns))]
        protocols = dict.fromkeys(group.protocol for group in found.values())
        about = f"Protocol {', '.join(protocols)}. {caption}".strip()
        blocks.append(make_table(title, about, columns, methods, _value, more))
    if absent:
        reason = f"Not run yet for {', '.join(part.group for part in absent)}:" if methods else "Not run yet:"
        blocks.append(NotRun(title, reason, _commands(absent, run)))
    return blocks


def _commands(parts: Sequence[Part], methods: str) -> tuple[str, ...]:
    """Return one command for each folder of embeddings."""
    folders = dict.fromkeys(part.embeddings for part in parts)
    return tuple(
        run_command([part.group for part in parts if part.embeddings == folder], methods, folder) for folder in folders
    )


def _group(column: Column) -> Group:
    assert column.group is not None
    return column.group


def _value(method: str, column: Column) -> Value:
    return _group(column).value(method, column.name)


def _ordered(groups: Iterable[Group]) -> list[str]:
    """Return the methods of all groups, each once, as a table lists them."""
    return sorted({method for group in groups for method in group.runs}, key=table_place)
