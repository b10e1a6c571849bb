"""One writer at a time: a lock that the system takes back when its holder dies, however it dies."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from hycal.errors import HyCalError, storing

SECONDS_TO_WAIT = 10.0
_SECONDS_BETWEEN = 0.005


class LockedError(HyCalError):
    """Another process, or another thread, is changing the project."""


@contextlib.contextmanager
def writing(path: Path, *, seconds: float = SECONDS_TO_WAIT) -> Iterator[None]:
    """Hold the right to change the file at `path`; wait for another holder for some seconds, then say so.

    The lock is on a hidden file beside it, because the file itself is replaced by every change.
    """
    lock = path.with_name(f".{path.name}.lock")
    with storing(path):
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _acquire(descriptor, path, seconds)
        yield
    finally:
        os.close(descriptor)  # gives the lock back


def _acquire(descriptor: int, path: Path, seconds: float) -> None:
    until = time.monotonic() + seconds
    while not _try(descriptor):
        if time.monotonic() >= until:
            raise LockedError(
                f"Another program is changing {path} and has not finished in {seconds:g} s. Nothing was changed here; "
                "try again when it is done."
            )
        time.sleep(_SECONDS_BETWEEN)


if sys.platform == "win32":
    import msvcrt

    def _try(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
