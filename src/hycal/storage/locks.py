"""One writer at a time: a lock that the system releases when its holder dies."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from hycal.errors import HyCalError, StorageError, storing

if sys.platform != "win32":
    import fcntl

SECONDS_TO_WAIT = 10.0
_SECONDS_BETWEEN = 0.005
_HELD = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}  # what systems say of a lock that another program holds


class LockedError(HyCalError):
    """Another process, or another thread, is changing the project."""


@contextlib.contextmanager
def writing(path: Path, *, seconds: float = SECONDS_TO_WAIT) -> Iterator[None]:
    """Hold the lock of the file at `path`; raise LockedError if another holder keeps it for `seconds`.

    The lock is on a hidden file beside it, because every change replaces the file itself.
    """
    from filelock import FileLock, Timeout  # here, so that those who only read do not wait for it

    hidden = path.with_name(f".{path.name}.lock")
    lock = FileLock(hidden)
    with storing(path):
        _check_locks_work(hidden)
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


def _check_locks_work(hidden: Path) -> None:
    """Refuse a file system without locks: there two writers could lose each other's changes."""
    if sys.platform == "win32":
        return
    descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _HELD:
            raise StorageError(
                f"The file system of {hidden.parent} has no file locks (flock: {error.strerror}), so two programs "
                "could lose each other's changes. Nothing was changed. Keep the model on a local disk, or mount this "
                "one with locks."
            ) from None
    finally:
        os.close(descriptor)  # which also frees the lock
