"""Safe unpacking of archives: nothing is written unless every member is a plain file inside the folder."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any

from hycal.errors import HyCalError
from hycal.storage.atomic import check_replaceable

_PIECE = 2**20
_TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_ZIP = (".zip",)
_COMPRESSIONS: tuple[tuple[bytes, Callable[..., Any]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ", lzma.open),
    (b"", open),
)


@dataclass(frozen=True)
class _Member:
    name: str
    size: int
    open: Callable[[], IO[bytes]]


def is_archive(name: str) -> bool:
    """Return whether `unpack` accepts the suffix of the file."""
    return name.lower().endswith(_TAR + _ZIP)


def unpack(archive: Path, folder: Path) -> int:
    """Unpack `archive` into `folder` and return the number of its files.

    Absolute names, "..", links and devices are refused before anything is written, and so is an archive that states a
    size larger than the free space. A member that is longer than its stated size is refused while it is written. A file
    that is there already is kept if it is the same, and is an error otherwise.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with ExitStack() as stack:
            members = list(_members(archive, stack))
            needed = sum(member.size for member in members)
            free = shutil.disk_usage(folder).free
            if needed > free:
                raise HyCalError(f"{archive} unpacks to {needed:,} bytes, but {folder} has {free:,} free. Make room.")
            inside = folder.resolve()
            targets = [_target(archive, folder, inside, member.name) for member in members]
            for member, target in zip(members, targets, strict=True):
                _write(archive, member, target)
            return len(members)
    except HyCalError:
        raise
    except Exception as error:  # on hostile bytes, decompressors raise errors of any type
        reason = str(error) or type(error).__name__
        raise HyCalError(f"{archive} cannot be unpacked: {reason}. Delete it and fetch it again.") from None


def _members(archive: Path, stack: ExitStack) -> Iterator[_Member]:
    if archive.name.lower().endswith(_ZIP):
        yield from _zip_members(archive, stack.enter_context(zipfile.ZipFile(archive)))
    else:
        content = stack.enter_context(_decompressed(archive))
        bounded: Any = _BoundedReads(content)
        yield from _tar_members(archive, stack.enter_context(tarfile.open(fileobj=bounded, mode="r:")))  # noqa: SIM115


def _decompressed(archive: Path) -> IO[bytes]:
    with archive.open("rb") as file:
        begin = file.read(8)
    return next(opens for magic, opens in _COMPRESSIONS if begin.startswith(magic))(archive, "rb")


@dataclass
class _BoundedReads:
    """A file that refuses to be read far without a seek.

    A small archive may hold a tar header of gigabytes, which tarfile would read in one piece or, in Python 3.14, in
    many. It seeks before each header, and before each piece of a member's content.
    """

    file: IO[bytes]
    read_on: int = 0

    def read(self, size: int) -> bytes:
        self.read_on += size
        if size < 0 or self.read_on > 2 * _PIECE:
            raise tarfile.ReadError(f"a header of {self.read_on:,} bytes or more")
        return self.file.read(size)

    def seek(self, position: int) -> int:
        self.read_on = 0
        return self.file.seek(position)

    def tell(self) -> int:
        return self.file.tell()


def _zip_members(archive: Path, file: zipfile.ZipFile) -> Iterator[_Member]:
    for info in file.infolist():
        kind = info.external_attr >> 28  # file type of a Unix mode: 8 regular, 10 link, 0 not recorded
        if info.is_dir():
            _check_name(archive, info.filename.rstrip("/"))
            continue
        if kind not in (0, 8):
            raise _refusal(archive, info.filename, "is a link or a device")
        yield _Member(info.filename, info.file_size, partial(file.open, info))


def _tar_members(archive: Path, file: tarfile.TarFile) -> Iterator[_Member]:
    for info in file:
        if info.isdir():
            _check_name(archive, info.name)
            continue
        if not info.isreg():
            raise _refusal(archive, info.name, "is a link or a device")
        yield _Member(info.name, info.size, partial(_tar_file, file, info))


def _tar_file(file: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    opened = file.extractfile(info)
    if opened is None:
        raise tarfile.TarError(f"{info.name} has no content")
    return opened


def _check_name(archive: Path, name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or "\0" in name:
        raise _refusal(archive, name, "points outside the folder")
    return path


def _target(archive: Path, folder: Path, inside: Path, name: str) -> Path:
    target = folder / _check_name(archive, name)
    if not target.resolve().is_relative_to(inside):  # through a link that exists already
        raise _refusal(archive, name, "points outside the folder")
    if target.is_symlink() or target == folder:
        raise _refusal(archive, name, "would replace a link or the folder itself")
    return target


def _refusal(archive: Path, name: str, why: str) -> HyCalError:
    return HyCalError(
        f"{archive} is not safe to unpack: its member {name!r} {why}. Expected plain files only; nothing was "
        "written. Get the archive from its publisher."
    )


def _write(archive: Path, member: _Member, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        _check_same(archive, member, target)
        return
    part, left = target.with_name(f".{target.name}.part"), member.size
    check_replaceable(part)
    with member.open() as source, part.open("wb") as sink:
        while piece := source.read(_PIECE):
            left -= len(piece)
            if left < 0:
                raise HyCalError(f"{archive} is not safe to unpack: {member.name!r} is longer than it says.")
            sink.write(piece)
    part.replace(target)


def _check_same(archive: Path, member: _Member, target: Path) -> None:
    same = target.is_file() and target.stat().st_size == member.size
    if same:
        with member.open() as source, target.open("rb") as there:
            same = all(there.read(len(piece)) == piece for piece in iter(partial(source.read, _PIECE), b""))
    if not same:
        raise HyCalError(
            f"{target} exists and is not the file in {archive}. It is left as it is; move it away, then unpack."
        )
