"""Work during which one worker dies by kill -9, once. Workers import this module, so it imports little itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hycal.errors import HyCalError

if TYPE_CHECKING:
    from hycal.bench import runner
    from hycal.encoders.encoder import Encoder
    from hycal.state.steps import LearningStep


def die_once(folder: Path, *, after: int) -> None:
    """Kill this process at the call after `after` of all processes; later calls do nothing."""
    for number in range(after + 1):
        try:
            (folder / f"call {number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        if number == after:
            os.kill(os.getpid(), signal.SIGKILL)
        return


def a_worker_died(folder: Path, *, after: int) -> bool:
    return (folder / f"call {after}").exists()


def load_and_die(folder: Path, load: Callable[[], Encoder]) -> Encoder:
    die_once(folder, after=2)
    return load()


@dataclass(frozen=True)
class DyingShard:
    """A shard of samples that takes its first worker with it."""

    step: LearningStep
    folder: Path

    def __call__(self) -> LearningStep:
        die_once(self.folder, after=1)
        return self.step


def compute_and_die(work: runner._Work, out: Path) -> None:
    from hycal.bench import runner

    die_once(out.parent / "calls", after=4)
    runner._compute(work, out)


def begun(folder: Path, piece: int) -> int:
    """Note that the piece was begun, fail at 5 and die at 7."""
    (folder / f"{piece}-{len(list(folder.glob(f'{piece}-*')))}").touch()
    if piece == 5:
        raise HyCalError("five is refused")
    if piece == 7:
        os._exit(1)
    return piece**2
