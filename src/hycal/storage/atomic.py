"""Files that appear whole or not at all, and that a power cut does not undo: every file we keep is written here."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

if sys.platform != "win32":
    import fcntl


def write_whole(target: Path, content: bytes) -> None:
    """Write `content` to `target`, in one step and on the disk; its folder is made if missing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """Yield a file to write; at the end it takes the name `target`, on the disk and in one step.

    Whoever looks sees the old file or the new one, never a part; several may write at once, and the last one
    stays. The mode of the old file is kept, and a link to it stays a link. What a killed writer of the same target
    left is removed.

    Parameters
    ----------
    target : Path
        In a folder that exists. Until the file is complete it lies in a hidden folder beside `target`, under its
        `name`: a library that wants a name may write there, and leave what it likes in that folder.
    """
    with preparing(target) as draft:
        yield draft.file
        draft.finish()
        draft.install()


@dataclass(frozen=True)
class Draft:
    """A file that is to take the name `target`."""

    file: IO[bytes]
    target: Path
    mode: int

    def finish(self) -> None:
        """Put the content on the disk; this is what takes time."""
        part = Path(self.file.name)
        self.file.flush()
        part.chmod(self.mode)
        _sync_file(part)

    def install(self) -> None:
        """Give it the name."""
        _rename(Path(self.file.name), self.target)


def install(part: Path, target: Path) -> None:
    """Put a file that was written elsewhere in the same file system on the disk, and give it the name `target`."""
    _sync_file(part)
    _rename(part, target)


def _rename(part: Path, target: Path) -> None:
    part.replace(target)
    sync_folder(target.parent)


def real_file(path: Path) -> Path:
    """Return the file that `path` is a link to, or the path itself: a link stays one, and one file has one journal."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


@contextlib.contextmanager
def preparing(target: Path) -> Iterator[Draft]:
    """Yield a draft, as `replacing` does, for a caller who decides in the end whether it is installed."""
    target = real_file(target)
    _sweep(target)
    with _workshop(target) as folder, (folder / "content").open("xb") as file:
        yield Draft(file, target, (target if target.exists() else Path(file.name)).stat().st_mode & 0o777)


@contextlib.contextmanager
def _workshop(target: Path) -> Iterator[Path]:
    """Make a hidden folder beside `target`, locked while it is in use, and removed after."""
    while True:
        folder = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
        folder.mkdir()
        with contextlib.ExitStack() as claim:
            with contextlib.suppress(FileNotFoundError):
                _lock(claim.enter_context(_opened(folder)), wait=True)
            if folder.exists():  # else another writer swept it in the moment before the lock
                claim.callback(shutil.rmtree, folder, ignore_errors=True)
                yield folder
                return


def _sweep(target: Path) -> None:
    """Remove the hidden folders of writers of `target` that are gone: those whose lock is free."""
    for folder in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        with contextlib.suppress(OSError), _opened(folder) as descriptor:
            if _lock(descriptor, wait=False):
                shutil.rmtree(folder, ignore_errors=True)


def _lock(descriptor: int | None, *, wait: bool) -> bool:
    """Return whether the lock was got; where folders have no locks, nothing is locked and nothing swept."""
    if sys.platform == "win32" or descriptor is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int | None]:
    """Open a folder, to lock or to sync it; Windows opens no folders, and needs no sync of them."""
    if sys.platform == "win32":
        yield None
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _sync_file(path: Path) -> None:
    """Put the content on the disk; by name, as a library may have put another file under it."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` survive a power cut."""
    with _opened(folder) as descriptor:
        if descriptor is not None:
            os.fsync(descriptor)
