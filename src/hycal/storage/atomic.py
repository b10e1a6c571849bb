"""Atomic and durable files: a reader sees the old file or the new one, and a power cut loses neither."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import stat
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hycal.errors import HyCalError

if sys.platform != "win32":
    import fcntl

TO_REPLACE = "Choose another name, or remove it first; commands with --force replace it."
_HEAD = 4096
_SECONDS_BETWEEN = 0.005


def write_whole(target: Path, content: bytes, *, mark: bytes = b"") -> None:
    """Write `content` to `target` atomically, and sync it to the disk; make its folder if it is missing.

    `mark` is that of `check_replaceable`.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target, mark=mark) as file:
        file.write(content)


def check_folder(path: Path) -> None:
    """Refuse a file in a folder that does not exist."""
    if not path.absolute().parent.is_dir():
        raise HyCalError(f"Cannot write {path}: the folder {path.parent} does not exist. Make it first.")


def check_replaceable(target: Path, mark: bytes = b"") -> None:
    """Raise if `target` is a file that must not be replaced.

    A folder, a device, a pipe or a socket is never replaced. `mark` is what the first 4 kB of every file of this kind
    have that hycal wrote: a file without it is someone else's. With no mark any file is replaced, in a folder of
    hycal's own or on demand.
    """
    try:
        status = target.stat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode):
        raise HyCalError(f"{target} is not an ordinary file, so it is not replaced. Choose another name.")
    if mark and status.st_size:
        with target.open("rb") as file:
            if mark not in file.read(_HEAD):
                raise HyCalError(f"{target} is a file that hycal did not write, so it is not replaced. {TO_REPLACE}")


@contextlib.contextmanager
def replacing(target: Path, *, mark: bytes = b"") -> Iterator[IO[bytes]]:
    """Yield a file to write; at the end it replaces `target` atomically, and is synced to the disk.

    A reader sees the old file or the new one, never a part. Several processes may write at once; the last one wins. The
    mode of the old file is kept, and a link to it stays a link. What killed writers of the same target left is removed.

    The folder of `target` must exist; the unfinished file is in a hidden folder beside `target`. A library that needs a
    name may write to the `name` of the yielded file, and leave other files in that folder. `mark` is that of
    `check_replaceable`.
    """
    check_replaceable(target, mark)
    with preparing(target) as draft:
        yield draft.file
        draft.finish()
        draft.install()


@dataclass(frozen=True)
class Draft:
    """A file that will replace `target`."""

    file: IO[bytes]
    target: Path
    mode: int

    def finish(self) -> None:
        """Sync the content to the disk; this is the slow part."""
        part = Path(self.file.name)
        self.file.flush()
        part.chmod(self.mode)
        _sync_file(part)

    def install(self) -> None:
        """Replace the target."""
        _rename(Path(self.file.name), self.target)


def install(part: Path, target: Path) -> None:
    """Sync a file that was written elsewhere in the same file system, and rename it to `target`."""
    check_replaceable(target)
    _sync_file(part)
    _rename(part, target)


def _rename(part: Path, target: Path) -> None:
    part.replace(target)
    sync_folder(target.parent)


def real_file(path: Path) -> Path:
    """Return the file that `path` links to, or the path itself. So a link stays one, and a file has one journal."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


@contextlib.contextmanager
def preparing(target: Path) -> Iterator[Draft]:
    """Yield a draft as `replacing` does; the caller decides whether to install it."""
    target = real_file(target)
    check_replaceable(target)
    _sweep(target)
    with _workshop(target) as folder, (folder / "content").open("xb") as file:
        yield Draft(file, target, (target if target.exists() else Path(file.name)).stat().st_mode & 0o777)


@contextlib.contextmanager
def _workshop(target: Path) -> Iterator[Path]:
    """Make a hidden folder beside `target`; it is locked while it is in use, and removed at the end."""
    while True:
        folder = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
        folder.mkdir()
        with contextlib.ExitStack() as claim:
            with contextlib.suppress(FileNotFoundError):
                _lock(claim.enter_context(_opened(folder)), wait=True)
            if folder.exists():  # else another writer removed it before the lock
                claim.callback(shutil.rmtree, folder, ignore_errors=True)
                yield folder
                return


def clear_drafts(target: Path, *, seconds: float) -> bool:
    """Wait for the other writers of `target`, and remove what killed ones left; return whether no draft is left."""
    target, until = real_file(target), time.monotonic() + seconds
    while _sweep(target):
        if time.monotonic() > until:
            return False
        time.sleep(_SECONDS_BETWEEN)
    return True


def _sweep(target: Path) -> list[Path]:
    """Remove the hidden folders of killed writers of `target`: those that are not locked. Return the others."""
    folders = list(target.parent.glob(f".{glob.escape(target.name)}.*.part"))
    for folder in folders:
        remove_draft(folder)
    return [folder for folder in folders if folder.exists()]


def remove_draft(folder: Path) -> None:
    """Remove the hidden folder of a killed writer; one that is in use stays."""
    with contextlib.suppress(OSError), _opened(folder) as descriptor:
        if _lock(descriptor, wait=False):
            shutil.rmtree(folder, ignore_errors=True)


def _lock(descriptor: int | None, *, wait: bool) -> bool:
    """Return whether the folder was locked; never where folders have no locks, so that nothing is removed there."""
    if sys.platform == "win32" or descriptor is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int | None]:
    """Open a folder to lock or sync it; None on Windows, which can neither open folders nor needs to sync them."""
    if sys.platform == "win32":
        yield None
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _sync_file(path: Path) -> None:
    """Sync a file by its name: a library may have replaced the file that was opened."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Sync the names in `folder` to the disk."""
    with _opened(folder) as descriptor:
        if descriptor is not None:
            os.fsync(descriptor)
