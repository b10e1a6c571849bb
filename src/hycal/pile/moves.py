"""Carry out the manifest of a sorted folder, finish it, or undo it. No file is ever replaced.

Each image is put in place in one step, so a kill leaves it where it was or where it goes. A move is a second name for
the file and then one name less; between two file systems it is a copy on the disk before the old file goes. What is
done and what is not is seen from the files: a run that was killed needs no memory of its own.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path, PurePath

from hycal.errors import HyCalError
from hycal.pile.lists import MARKS, lists_of, sidecar_of
from hycal.pile.manifest import NAME, Manifest, PlannedMove, read_manifest, write_manifest
from hycal.storage.atomic import check_replaceable, clear_drafts, sync_folder, write_whole
from hycal.storage.locks import hold_lock

Watch = Callable[[int, int], None]  # images done, all images

_PARTS = ".hycal-sort.part"  # folder of the copy that is being made
_NO_SECOND_NAME = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS}
_AT_ONCE = 2**20


@dataclass(frozen=True)
class Problem:
    """An image that stayed where it was, and the reason."""

    file: Path
    reason: str


@contextlib.contextmanager
def locked_folder(out: Path) -> Iterator[None]:
    """Hold the lock of a sorted folder that exists, and remove what a killed run left unfinished."""
    with hold_lock(out / NAME):
        shutil.rmtree(out / _PARTS, ignore_errors=True)
        for name in (NAME, *MARKS):
            clear_drafts(out / name, seconds=0.0)
        yield


def carry_out(out: Path, manifest: Manifest, *, watch: Watch | None = None) -> tuple[Manifest, list[Problem]]:
    """Put every image of the manifest in its place; return the manifest of those that are, and what could not be.

    The caller holds the lock of `locked_folder`.
    """
    write_manifest(out, manifest)
    made = [name for name in manifest.made if _link_above(out, name) is None]
    for name in made:
        (out / name).mkdir(exist_ok=True)
    placed, problems = list(manifest.entries[: manifest.done]), []
    for done, entry in enumerate(manifest.entries[manifest.done :], start=1):
        source = manifest.folder / entry.source
        try:
            _check_real_folders(out, entry)
            if entry.sidecar:
                _write_new(out / entry.sidecar, sidecar_of(entry), out)
            _PLACING[manifest.way](source, out / entry.target, entry, out)
            placed.append(entry)
        except OSError as error:
            problems.append(Problem(source, error.strerror or str(error)))
            if entry.sidecar:
                _remove_own(out / entry.sidecar, sidecar_of(entry))
        if watch is not None:
            watch(done, len(manifest.entries) - manifest.done)
    finished = replace(manifest, entries=tuple(placed), done=len(placed))
    for name, content in lists_of(out, finished).items():
        write_whole(out / name, content, mark=MARKS[name])
    shutil.rmtree(out / _PARTS, ignore_errors=True)
    for name in made:
        sync_folder(out / name)
    write_manifest(out, finished)
    return finished, problems


def undo_sort(out: Path, *, watch: Watch | None = None) -> tuple[Manifest, list[Problem]]:
    """Put everything back as it was before the folder was sorted; return the manifest of that, and what had to stay.

    A copy that was changed since stays, and so does a moved image whose old place is taken; then the manifest stays
    too, and undoing can be tried again.
    """
    if read_manifest(out) is None:
        raise HyCalError(f"{out} has no {NAME}, so `hycal sort` did not make it. Nothing was changed.")
    with locked_folder(out):
        manifest = read_manifest(out)
        if manifest is None:
            raise HyCalError(f"{out} was undone by another program. Nothing was changed.")
        write_manifest(out, replace(manifest, done=0))  # from now on only the files say what is in place
        undone, problems = _take_back(out, manifest, watch)
        for name in reversed([name for name in manifest.made if name != "." and _link_above(out, name) is None]):
            _remove_empty(out / name)
        if not problems:
            (out / NAME).unlink(missing_ok=True)
    if "." in manifest.made:
        _remove_empty(out)
    return replace(manifest, entries=tuple(undone)), problems


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # what is not empty has files of others
        folder.rmdir()


def _take_back(out: Path, manifest: Manifest, watch: Watch | None) -> tuple[list[PlannedMove], list[Problem]]:
    """Return the images that were in their new place and are back, and those that had to stay."""
    undone, problems = [], []
    for name in manifest.written:
        with contextlib.suppress(HyCalError):  # a list that someone else wrote stays
            check_replaceable(out / name, MARKS[name])
            (out / name).unlink(missing_ok=True)
    for done, entry in enumerate(reversed(manifest.entries), start=1):
        source, target = manifest.folder / entry.source, out / entry.target
        was_there = os.path.lexists(target)  # a run that was killed may not have placed it
        try:
            _check_real_folders(out, entry)
            if entry.sidecar:
                _remove_own(out / entry.sidecar, sidecar_of(entry))
            _TAKING_BACK[manifest.way](source, target, entry, out)
            undone += [entry] if was_there else []
        except OSError as error:
            problems.append(Problem(target, error.strerror or str(error)))
        if watch is not None:
            watch(done, len(manifest.entries))
    shutil.rmtree(out / _PARTS, ignore_errors=True)
    return undone, problems


def _copy(source: Path, target: Path, entry: PlannedMove, out: Path) -> None:
    if os.path.lexists(target):
        _check_own(target, entry)
        return
    _install(_copied(source, entry, out), target)


def _move(source: Path, target: Path, entry: PlannedMove, out: Path) -> None:
    if not os.path.lexists(source):
        if not os.path.lexists(target):
            raise OSError("it is gone, and not in its new place either")
        return
    if os.path.lexists(target):
        if not target.samefile(source):  # else a kill came between the two names
            if _hash(source) != entry.sha256:
                return  # the image was moved, and this is a new one of the same name
            _check_own(target, entry)
        _check_apart(source, target)
        source.unlink()
        return
    if _hash(source) != entry.sha256:
        raise OSError("it was changed after it was sorted; sort again")
    _rename(source, target, entry, out)


def _link(source: Path, target: Path, entry: PlannedMove, out: Path) -> None:
    if not _is_link(target, source):
        target.symlink_to(source)


def _remove_copy(source: Path, target: Path, entry: PlannedMove, out: Path) -> None:
    if os.path.lexists(target):
        _check_own(target, entry)
        _check_apart(source, target)
        if not source.is_file() or _hash(source) != entry.sha256:
            raise OSError(f"its original, {source}, is gone or was changed, so the copy stays")
        target.unlink()


def _move_back(source: Path, target: Path, entry: PlannedMove, out: Path) -> None:
    if not os.path.lexists(target):
        if not os.path.lexists(source):
            raise OSError("it is gone, and not in its old place either")
        return
    if target.is_symlink() or not target.is_file():
        raise OSError("it is no longer an ordinary file")
    if os.path.lexists(source):
        if not target.samefile(source) and _hash(source) != _hash(target):
            raise OSError(f"there is another file in its old place, {source}")
        _check_apart(source, target)
        target.unlink()
        return
    source.parent.mkdir(parents=True, exist_ok=True)
    _rename(target, source, None, out)


def _remove_link(source: Path, target: Path, entry: PlannedMove, out: Path) -> None:
    if _is_link(target, source):
        target.unlink()
    elif os.path.lexists(target):
        raise OSError("it is no longer the link that was made")


_Step = Callable[[Path, Path, PlannedMove, Path], None]
_PLACING: dict[str, _Step] = {"copy": _copy, "move": _move, "link": _link}
_TAKING_BACK: dict[str, _Step] = {"copy": _remove_copy, "move": _move_back, "link": _remove_link}


def _is_link(target: Path, source: Path) -> bool:
    return target.is_symlink() and target.readlink() == source


def _rename(source: Path, target: Path, entry: PlannedMove | None, out: Path) -> None:
    """Move a file without replacing another; `entry` has the hash that a copy must have, if it is known."""
    try:
        _install(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        part = _copied(source, entry, out if target.is_relative_to(out) else target.parent)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        _install(part, target)
        sync_folder(target.parent)
        _remove_old(source, target)
        if part.parent.parent != out:
            part.parent.rmdir()


def _install(part: Path, target: Path) -> None:
    """Give a file another name in the same file system; raise FileExistsError where the name is taken."""
    try:
        os.link(part, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_SECOND_NAME:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        part.rename(target)
    else:
        _remove_old(part, target)


def _remove_old(old: Path, new: Path) -> None:
    """Remove the old name of a file; if that fails, the new one goes again."""
    try:
        old.unlink()
    except OSError:
        new.unlink()
        raise


def _copied(source: Path, entry: PlannedMove | None, room: Path) -> Path:
    """Return a copy in a hidden folder of `room`, with times and permissions; refuse a file that changed since."""
    part = _new_part(room)
    digest = hashlib.sha256()
    with _opened(source) as reading, part.open("wb") as file:
        while block := reading.read(_AT_ONCE):
            digest.update(block)
            file.write(block)
    if entry is not None and digest.hexdigest() != entry.sha256:
        part.unlink()
        raise OSError("it was changed after it was sorted; sort again")
    shutil.copystat(source, part)
    return part


def _new_part(room: Path) -> Path:
    """Return the path of a file to write, in a hidden folder of `room`; links that lead elsewhere are not followed."""
    folder = room / _PARTS
    folder.mkdir(exist_ok=True)
    if folder.is_symlink():
        raise OSError(f"{folder} is a link; remove it")
    part = folder / "content"
    part.unlink(missing_ok=True)
    return part


def _check_real_folders(out: Path, entry: PlannedMove) -> None:
    """Refuse an image of a folder that is a link: what is written or removed there would be outside of `out`."""
    for name in (entry.target, entry.sidecar):
        if (link := _link_above(out, name)) is not None:
            raise OSError(f"{link} is a link, so nothing in it is touched")


def _link_above(out: Path, name: str) -> Path | None:
    """Return the first folder between `out` and the file or folder `name` that is a link."""
    return next((out / above for above in PurePath(name).parents if (out / above).is_symlink() and above.name), None)


def _write_new(target: Path, content: bytes, out: Path) -> None:
    """Write a small file in one step, unless it is there already."""
    if os.path.lexists(target):
        if target.read_bytes() != content:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        return
    part = _new_part(out)
    part.write_bytes(content)
    _install(part, target)


def _remove_own(path: Path, content: bytes) -> None:
    """Remove a file that hycal wrote; one that was changed since stays."""
    if path.is_file() and path.read_bytes() == content:
        path.unlink()


def _check_apart(source: Path, target: Path) -> None:
    """Refuse to remove one of two paths that lead, through a link, to one name of a file."""
    if os.path.realpath(source) == os.path.realpath(target):
        raise OSError(f"{source} and {target} are one file, through a link")


def _check_own(target: Path, entry: PlannedMove) -> None:
    if target.is_symlink() or not target.is_file() or _hash(target) != entry.sha256:
        raise OSError(f"{target} has another content than the image that was sorted")


def _hash(path: Path) -> str:
    with _opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _opened(path: Path) -> BufferedReader:
    """Open an ordinary file: a pipe would keep us waiting, and a device may have no end."""
    if not path.is_file():
        raise OSError(f"{path} is not an ordinary file")
    return path.open("rb")
