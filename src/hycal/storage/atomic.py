"""Atomic and durable files: a reader sees the old file or the new one, and a power cut loses neither."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

if sys.platform != "win32":
    import fcntl


_SECONDS_BETWEEN = 0.005


def write_whole(target: Path, content: bytes) -> None:
    """Write `content` to `target` atomically, and sync it to the disk; make its folder if it is missing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """Yield a file to write; at the end it replaces `target` atomically, and is synced to the disk.

    A reader sees the old file or the new one, never a part. Several processes may write at once; the last one wins. The
    mode of the old file is kept, and a link to it stays a link. What killed writers of the same target left is removed.

    Parameters
    ----------
    target : Path
        In a folder that exists. The unfinished file is in a hidden folder beside `target`. A library that needs a name
        may write to the `name` of the yielded file, and leave other files in that folder.
    """
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
