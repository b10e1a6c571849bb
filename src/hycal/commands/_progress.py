"""How far a run is: a bar with rate and remaining time on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.progress import TimeRemainingColumn as Remaining
from rich.text import Text

from hycal.embedding.outcomes import Tick

_SECONDS_PER_LINE = 30.0


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.1f} images/s", style="progress.data.speed")


@contextmanager
def embedding_progress(console: Console, *, total: int) -> Iterator[Callable[[Tick], None]]:
    """Yield a function for `embed(..., watch=)` that shows the run on `console`."""
    if not console.is_terminal:
        yield _line_writer(console)
        return
    columns = (TextColumn("embedding"), BarColumn(), MofNCompleteColumn(), _Rate(), Remaining())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)

        def show(tick: Tick) -> None:
            progress.update(task, completed=tick.done)

        yield show


def _line_writer(console: Console) -> Callable[[Tick], None]:
    began = said = time.monotonic()

    def write(tick: Tick) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said < _SECONDS_PER_LINE:
            return
        said = now
        rate = tick.done / (now - began)
        left = (tick.total - tick.done) / rate
        console.print(
            f"{tick.done:,} of {tick.total:,} images, {rate:.1f} images/s, {left / 60:.0f} min left",
            highlight=False,
        )

    return write
