"""One writer at a time: a lock that the system releases when its holder dies."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from hycal.errors import HyCalError, StorageError, storing

if sys.platform == "win32":
    from filelock import FileLock, Timeout
else:
    import fcntl

SECONDS_TO_WAIT = 10.0
_SECONDS_BETWEEN = 0.005
_HELD = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}  # errors of systems for a lock that another program holds


class LockedError(HyCalError):
    """Another process, or another thread, is changing the project.

    Examples
    --------
    >>> from hycal import HyCalError
    >>> issubclass(LockedError, HyCalError)
    True
    """


@contextlib.contextmanager
def hold_lock(path: Path, *, seconds: float = SECONDS_TO_WAIT) -> Iterator[None]:
    """Hold the lock of the file at `path`; raise LockedError if another holder keeps it for `seconds`.

    The lock is on a hidden file beside it, because every change replaces the file itself. The hidden file is removed
    at the end; a holder that was killed leaves it, and the next one removes it.
    """

    hidden = path.with_name(f".{path.name}.lock")
    with storing(path):
        release = _acquire(hidden, seconds)
        if release is None:
            raise LockedError(
                f"Another program is changing {path} and has not finished in {seconds:g} s. Nothing was changed here; "
                "try again when it is done."
            )
    try:
        yield
    finally:
        release()


if sys.platform == "win32":

    def _acquire(hidden: Path, seconds: float) -> Callable[[], object] | None:
        lock = FileLock(hidden)
        try:
            lock.acquire(timeout=seconds, poll_interval=_SECONDS_BETWEEN)
        except Timeout:
            return None
        return lock.release

else:

    def _acquire(hidden: Path, seconds: float) -> Callable[[], object] | None:
        """Return the function that frees the lock; None if another holder keeps it for `seconds`."""
        end = time.monotonic() + seconds
        while True:
            descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
            try:
                locked = _lock(descriptor, hidden)
                if locked and _is_at(hidden, descriptor):
                    return partial(_release, hidden, descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
            if locked:  # the holder before has removed the file: the lock is on another one by now
                continue
            if time.monotonic() >= end:
                return None
            time.sleep(_SECONDS_BETWEEN)

    def _lock(descriptor: int, hidden: Path) -> bool:
        """Lock the open file unless another holder has; without locks two writers could lose each other's changes."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _HELD:
                return False
            raise StorageError(
                f"The file system of {hidden.parent} has no file locks (flock: {error.strerror}), so two programs "
                "could lose each other's changes. Nothing was changed. Keep the model on a local disk, or mount this "
                "one with locks."
            ) from None
        return True

    def _is_at(hidden: Path, descriptor: int) -> bool:
        """Whether the open file is still the one at that path."""
        try:
            return os.path.samestat(hidden.lstat(), os.fstat(descriptor))
        except FileNotFoundError:
            return False

    def _release(hidden: Path, descriptor: int) -> None:
        """Remove the file while it is locked, then free it: whoever waits for it finds that it is gone."""
        with contextlib.suppress(OSError):
            hidden.unlink()
        os.close(descriptor)
