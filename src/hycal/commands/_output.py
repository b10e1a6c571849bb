"""Everything that commands print: lines, tables, JSON, errors, receipts of changes, and progress."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ParamSpec, TextIO, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from hycal.errors import HyCalError
from hycal.escaping import json_text, visible

if TYPE_CHECKING:
    from hycal.embedding.store import Skipped, Tick
    from hycal.project import Project, Receipt
    from hycal.project.evaluation import Score

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

FOUND_SOMETHING = 3  # exit code under --strict
INTERRUPTED = 130  # exit code after Ctrl+C

_WIDEST_TABLE = 10_000
_SKIPPED_SHOWN = 10
_CLASSES_SHOWN = 5
_SECONDS_PER_LINE = 30.0


def plain(text: str) -> Text:
    """Return `text` as a table cell: control characters are escaped, and brackets are not markup."""
    return Text(visible(text))


def print_line(console: Console, line: str, *, label: str = "", style: str = "", separator: str = ": ") -> None:
    """Print one line without markup or wrapping, after a coloured `label` if there is one."""
    text = Text(visible(label), style=style)
    if label:
        text.append(separator, style="default")
    text.append(visible(line), style="default")
    try:
        console.print(text, highlight=False, soft_wrap=True)
    except (OSError, SystemExit):  # rich ends the program where a pipe is closed
        if not console.stderr:
            raise
        _settle(sys.stderr)  # a message that nobody can read changes nothing


def _settle(stream: TextIO) -> None:
    """Flush a stream; if it fails, let it end at the null device, as Python flushes it once more at the end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # the stream of a test, or none at all
        try:
            stream.flush()
        except OSError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)


def print_table(table: Table) -> None:
    """Print a table without cutting it: a terminal folds long names, and a pipe gets one line for each row."""
    for column in table.columns:
        column.overflow = "fold"
    console = Console()
    if not console.is_terminal:
        whole = console.measure(table, options=console.options.update(width=_WIDEST_TABLE)).maximum
        console = Console(width=max(console.width, whole))
    console.print(table)


def print_json(value: Any) -> None:
    """Print one line of JSON."""
    typer.echo(json_text(value))


def confirm(*lines: str) -> None:
    """Print what was done, on standard error if standard output fails: it is done, so the command ends with 0."""
    try:
        typer.echo("\n".join(map(visible, lines)))
    except OSError as error:
        _settle(sys.stdout)
        console = Console(stderr=True)
        problem = f"standard output cannot be written ({error.strerror or error}), but this was done:"
        for line in (problem, *lines):
            print_line(console, line)


def plural(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun: "1 class", "2 classes"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def class_count(count: int) -> str:
    """Return a number of classes: "1 class", "2 classes"."""
    return plural(count, "class", "classes")


def class_text(label: object, probability: float, classes: int) -> str:
    """Return a class with its probability, which says nothing where there is no other class."""
    return f"{label} (the only class)" if classes == 1 else f"{label} {probability:.1%}"


def short(hash_: str) -> str:
    """Return as much of a hash as people need; JSON has the whole."""
    return hash_[:12]


def is_watched() -> bool:
    """Whether a person can read a question and answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_or_stop(question: str) -> None:
    """Ask a person, and end with code 1 unless the answer is yes; where nobody can answer, go on."""
    if is_watched() and not typer.confirm(question, err=True):
        print_line(Console(stderr=True), "nothing was changed")
        raise typer.Exit(1)


def report_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Print HyCalError and OSError, exit 1; other exceptions propagate."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except HyCalError as error:
            message = str(error)
        except BrokenPipeError:  # `hycal ... | head`: nobody reads a message
            raise
        except OSError as error:
            _settle(sys.stdout)
            where = "" if error.filename is None else f"{error.filename}: "
            message = (
                f"{where}{error.strerror or error}. The system refused; check that the path exists, that it may be "
                "read and written, and that the disk has room."
            )
        print_line(Console(stderr=True), message, label="error", style="red")
        raise typer.Exit(1)

    return run


def print_skipped(skipped: Sequence[Skipped], *, rest: str = "; --json lists all of them") -> None:
    """Print the first skipped files with their reasons on standard error; `rest` says where the others are listed."""
    console = Console(stderr=True)
    for item in skipped[:_SKIPPED_SHOWN]:
        print_line(console, f"{item.name}: {item.reason}", label="skipped", style="yellow")
    if len(skipped) > _SKIPPED_SHOWN:
        print_line(console, f"... and {len(skipped) - _SKIPPED_SHOWN:,} more{rest}")


def skipped_json(skipped: Sequence[Skipped]) -> list[dict[str, str]]:
    """Return the skipped files with their reasons as plain values."""
    return [{"file": item.name, "reason": item.reason} for item in skipped]


def score_json(score: Score) -> dict[str, Any]:
    """Return a score as plain values."""
    return {"right": score.right, "total": score.total, "accuracy": score.accuracy if score.total else None}


def percent(score: Score) -> str:
    """Return a score for people, such as "50.0% (2 of 4)"."""
    return f"{score.accuracy:.1%} ({score.right:,} of {score.total:,})" if score.total else "-"


_SEALED = (
    "a sealed model does not know its images, so one that it had learned counts twice, and its thresholds for unknown "
    "images stay as at sealing; the model that it was sealed from has neither limit"
)


def print_receipt(
    project: Project,
    receipt: Receipt,
    *,
    as_json: bool,
    more: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Print what a change did, and the model's hash before and after; JSON also contains `more`, the text `notes`."""
    if as_json:
        confirm(json_text({**_receipt_json(project, receipt), **(more or {})}))
        return
    print_skipped(receipt.skipped)
    state, changed = project.state, receipt.before != receipt.after
    confirm(
        f"{receipt.action}: {receipt.what}{_several(receipt)}{'' if changed else '; the model is the same'}",
        f"{project.path}: {class_count(len(state.labels))}, {plural(state.n_images, 'image')}",
        f"model {short(receipt.before)} before, {short(receipt.after)} after",
        *notes,
    )
    if state.sealed and receipt.action in ("learn", "merge"):
        print_line(Console(stderr=True), _SEALED, label="note", style="yellow")


def _several(receipt: Receipt) -> str:
    """Name the classes of a change of several, the first few of them: a change of one says which."""
    names = [visible(str(label)) for label in receipt.images]
    more = f", ... and {len(names) - _CLASSES_SHOWN:,} more" if len(names) > _CLASSES_SHOWN else ""
    return f" ({', '.join(names[:_CLASSES_SHOWN])}{more})" if len(names) > 1 else ""


def _receipt_json(project: Project, receipt: Receipt) -> dict[str, Any]:
    return {
        "model": str(project.path),
        "action": receipt.action,
        "what": receipt.what,
        "before": receipt.before,
        "after": receipt.after,
        "changed": receipt.before != receipt.after,
        "images": {str(label): count for label, count in receipt.images.items()},
        "skipped": skipped_json(receipt.skipped),
        "undoable": receipt.undoable,
        "change": receipt.change,
    }


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.1f} images/s", style="progress.data.speed")


@contextmanager
def progress(
    console: Console,
    *columns: ProgressColumn,
    total: int | None = None,
    line: Callable[[int, int, float], str] | None = None,
) -> Iterator[Callable[[int, int | None], None]]:
    """Yield a function that shows how many steps are done, of how many.

    A terminal shows a bar of these columns; anything else gets a line every 30 seconds, which `line` returns, given the
    steps done, all steps, and the seconds since the start. `total` is the number of steps, if it is known before the
    first.
    """
    began = printed = time.monotonic()
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with bar if console.is_terminal else nullcontext():  # some versions of rich end a disabled bar with an empty line
        task = bar.add_task("", total=total)

        def show(done: int, of: int | None) -> None:
            nonlocal printed
            bar.update(task, completed=done, total=of)
            now = time.monotonic()
            if line and of and not console.is_terminal and now - printed >= _SECONDS_PER_LINE:
                printed = now
                print_line(console, line(done, of, now - began))

        yield show


@contextmanager
def counting(
    what: str, total: int | None = None, *, quiet: bool = False
) -> Iterator[Callable[[int, int | None], None]]:
    """Yield a function that shows how many steps of `what` are done, of how many, on standard error."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True, quiet=quiet)
    with progress(console, *columns, total=total, line=lambda done, of, _: f"{what}: {done:,} of {of:,}") as show:
        yield show


def counted(steps: Iterable[T], what: str, total: int, *, quiet: bool = False) -> Iterator[T]:
    """Yield the steps, and show how many of them are done."""
    with counting(what, total, quiet=quiet) as show:
        for done, step in enumerate(steps, start=1):
            show(done, total)
            yield step


@contextmanager
def working(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Show on a terminal that something takes a while whose end is not known."""
    console = Console(stderr=True, quiet=quiet)
    with console.status(what) if console.is_terminal else nullcontext():
        yield


@contextmanager
def embedding_progress(console: Console, *, total: int | None = None) -> Iterator[Callable[[Tick], None]]:
    """Yield a function for `embed(..., watch=)` that shows how many images are embedded."""

    def line(done: int, of: int, seconds: float) -> str:
        rate = done / seconds
        left = (of - done) / rate / 60
        return f"{done:,} of {of:,} images, {rate:.1f} images/s, {left:.0f} min left"

    columns = (TextColumn("embedding"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    with progress(console, *columns, total=total, line=line) as show:
        yield lambda tick: show(tick.done, tick.total)
