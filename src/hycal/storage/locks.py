"""One writer at a time: a lock that the system releases when its holder dies."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from hycal.errors import HyCalError, storing

SECONDS_TO_WAIT = 10.0
_SECONDS_BETWEEN = 0.005


class LockedError(HyCalError):
    """Another process, or another thread, is changing the project."""


@contextlib.contextmanager
def writing(path: Path, *, seconds: float = SECONDS_TO_WAIT) -> Iterator[None]:
    """Hold the lock of the file at `path`; raise LockedError if another holder keeps it for `seconds`.

    The lock is on a hidden file beside it, because every change replaces the file itself.
    """
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    with storing(path):
        try:
            lock.acquire(timeout=seconds, poll_interval=_SECONDS_BETWEEN)
        except Timeout:
            raise LockedError(
                f"Another program is changing {path} and has not finished in {seconds:g} s. Nothing was changed here; "
                "try again when it is done."
            ) from None
    try:
        yield
    finally:
        lock.release()
