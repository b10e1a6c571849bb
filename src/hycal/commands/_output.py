"""Lines for people, with names of files in them that strangers chose."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDEST = 10_000
CLUSTER_HELP = "Where to work: local:PROCESSES, ray:auto, ray://HOST:PORT, dask:tcp://HOST:PORT. See docs/scale.md."


def shown(text: str) -> str:
    r"""Return `text` with everything a terminal would obey, or cannot show, as an escape.

    Examples
    --------
    >>> shown("é\x1b[31m\udce9.jpg")
    'é\\x1b[31m\\udce9.jpg'
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text
    )


def say(console: Console, line: str, *, label: str = "", style: str = "") -> None:
    """Print one line as it is: no markup, no wrapping, after a coloured `label` if there is one."""
    text = Text(label, style=style)
    if label:
        text.append(": ", style="default")
    text.append(shown(line), style="default")
    console.print(text, highlight=False, soft_wrap=True)


def show_table(table: Table) -> None:
    """Print a table of which nothing is cut: on a terminal long names are folded, elsewhere it is as wide as it is."""
    for column in table.columns:
        column.overflow = "fold"
    console = Console()
    if not console.is_terminal:
        whole = console.measure(table, options=console.options.update(width=_WIDEST)).maximum
        console = Console(width=max(console.width, whole))
    console.print(table)
