"""Lines for people, with names of files in them that strangers chose."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

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
    """Print a table; where nobody looks, as wide as it is, so that nothing is cut."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.width, console.measure(table).maximum))
    console.print(table)
