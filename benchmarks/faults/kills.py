"""Run one operation, kill it once, and check the files that it leaves.

The operation runs in a forked process, so that a kill costs milliseconds and not the start of an interpreter. It is
killed in one of two ways: after a random time, which may be inside a library or a system call; or before a chosen line
of the modules that write, so that a kill can come between any two of their statements.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import hycal

_SOURCE = Path(hycal.__file__).parent
_WRITERS = (
    "storage/atomic.py",
    "storage/model_file.py",
    "project/journal.py",
    "storage/locks.py",
    "project/project.py",
    "project/state_file.py",
    "embedding/cache.py",
    "embedding/index.py",
    "pile/manifest.py",
    "pile/moves.py",
    "pile/sorting.py",
)
_ROOM = 1.5  # a kill in time comes at most this many durations after the start: a forked process is a little slower


@dataclass(frozen=True)
class Case:
    """An operation on the files in a folder.

    Attributes
    ----------
    name : str
    prepare : callable
        Writes the old state to an empty folder.
    act : callable
        Changes the old state to the new one.
    look : callable
        Returns a hash of everything in the folder that a user can see; raises if a file is damaged.
    left : callable
        Returns what of the old state must not be left in the new one, and is; "" for nothing.
    """

    name: str
    prepare: Callable[[Path], None]
    act: Callable[[Path], None]
    look: Callable[[Path], str]
    left: Callable[[Path], str] = lambda folder: ""


class Moment(Protocol):
    """The moment of a kill."""

    def arm(self) -> None:
        """Prepare the process that will be killed."""

    def strike(self, process: int) -> None:
        """Kill the process, unless it kills itself."""


@dataclass(frozen=True)
class AtTime:
    """After `seconds` of the operation."""

    seconds: float

    def arm(self) -> None:
        """Nothing to prepare."""

    def strike(self, process: int) -> None:
        """Wait, then kill."""
        time.sleep(self.seconds)
        os.kill(process, signal.SIGKILL)


@dataclass(frozen=True)
class AtLine:
    """Before line `number` of all executed lines of the writing modules."""

    number: int

    def arm(self) -> None:
        """Count executed lines; at `number`, the process kills itself."""
        left = self.number

        def count() -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

        _trace(count)

    def strike(self, process: int) -> None:
        """Do nothing: the process kills itself."""


@dataclass(frozen=True)
class Outcome:
    """The state after a kill, "old", "new" or "neither", and what is wrong with it; "" for nothing."""

    found: str
    wrong: str = ""


@dataclass(frozen=True)
class Prepared:
    """A case with its two allowed states, and the length of its operation in seconds and in lines."""

    case: Case
    old: str
    new: str
    seconds: float
    lines: int
    template: Path
    scratch: Path

    @classmethod
    def of(cls, case: Case, room: Path) -> Prepared:
        """Write the old state once, and run the operation without a kill."""
        template, calm, scratch = room / "template", room / "calm", room / "scratch"
        template.mkdir(parents=True)
        case.prepare(template)
        old = case.look(template)
        shutil.copytree(template, calm)
        lines = 0

        def count() -> None:
            nonlocal lines
            lines += 1

        with _silent(), _tracing(count):
            case.act(calm)
        new = case.look(calm)
        shutil.rmtree(calm)
        shutil.copytree(template, calm)
        began = time.perf_counter()
        with _silent():
            case.act(calm)
        return cls(case, old, new, time.perf_counter() - began, lines, template, scratch)

    def moment(self, chance: random.Random, *, in_time: bool) -> Moment:
        """Return a random moment of the operation, more often late, where it writes, than early, where it reads."""
        share = chance.random() ** 0.5
        return AtTime(share * _ROOM * self.seconds) if in_time else AtLine(1 + int(share * self.lines))

    def killed(self, moment: Moment) -> Outcome:
        """Run the operation from the old state, kill it, check the files, and run it again, as a user would."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        shutil.copytree(self.template, self.scratch)
        acknowledged = run_killed(self.case.act, self.scratch, moment)
        try:
            found = self.case.look(self.scratch)
        except Exception as error:  # any error of a reader is a finding
            return Outcome("neither", f"not whole: {error!r}")
        if found not in (self.old, self.new):
            return Outcome("neither", "another state than the old one and the new one")
        if found == self.new:
            return Outcome("new", self.case.left(self.scratch))
        return Outcome("old", "what was acknowledged is lost" if acknowledged else self._wrong_again())

    def _wrong_again(self) -> str:
        with _silent():
            self.case.act(self.scratch)
        if self.case.look(self.scratch) != self.new:
            return "doing it again does not lead to the new state"
        left = [path.name for path in self.scratch.rglob("*.part")]
        return f"left behind: {left}" if left else self.case.left(self.scratch)


def run_killed(act: Callable[[Path], None], folder: Path, moment: Moment) -> bool:
    """Run an operation in a process that is killed; return whether it reported its end before that."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            os.close(reading)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            os.write(writing, b"b")
            moment.arm()
            act(folder)
            sys.settrace(None)
            os.write(writing, b"d")
        os._exit(0)
    os.close(writing)
    os.read(reading, 1)
    moment.strike(child)
    os.waitpid(child, 0)
    done = os.read(reading, 1) == b"d"
    os.close(reading)
    return done


@contextlib.contextmanager
def _tracing(count: Callable[[], None]) -> Iterator[None]:
    _trace(count)
    try:
        yield
    finally:
        sys.settrace(None)


def _trace(count: Callable[[], None]) -> None:
    writers = {str(_SOURCE / name) for name in _WRITERS}

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            count()
        return local

    def entered(frame: FrameType, event: str, argument: Any) -> Any:
        return local if frame.f_code.co_filename in writers else None

    sys.settrace(entered)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield
