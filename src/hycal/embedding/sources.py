"""Image sources: a file, bytes in memory, or a row of an array of a data set.

A source returns its raw content. The hash of the content identifies the image in the cache: a renamed, copied or moved
file is not encoded again, and an edited file does not get the embedding of its old content.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from hycal.errors import HyCalError

Pixels: TypeAlias = npt.NDArray[np.uint8]
Content: TypeAlias = bytes | Pixels

MOST_BYTES = 512 * 2**20
TABLES = (".csv", ".jsonl")


class ImageError(HyCalError):
    """One image cannot be used; the message is the reason in the report."""


class ImageSource(Protocol):
    """One image that is not read yet.

    Examples
    --------
    >>> sources: list[ImageSource] = [ImageFile(Path("a.jpg")), ImageBytes("b.jpg", b"...")]
    >>> [source.name for source in sources]
    ['a.jpg', 'b.jpg']
    """

    @property
    def name(self) -> str:
        """The name of the image in a report."""

    def read(self) -> Content:
        """Return the bytes of an image file, or uint8 pixels; raise an ImageError if it cannot be read."""


@dataclass(frozen=True)
class ImageFile:
    """An image in a file of its own.

    Examples
    --------
    >>> ImageFile(Path("photos/rose.jpg")).name
    'photos/rose.jpg'
    """

    path: Path

    @property
    def name(self) -> str:
        """The path, as given."""
        return str(self.path)

    def read(self) -> bytes:
        """Return the content of the file; pipes, devices and too large files are refused before they are read."""
        try:
            status = self.path.stat()
            if stat.S_ISDIR(status.st_mode):
                linked = self.path.is_symlink()
                why = "a link to a folder that is read already, or that holds this one; not followed"
                raise ImageError(why if linked else "a folder that may not be opened")
            if not stat.S_ISREG(status.st_mode):
                raise ImageError("not a regular file")
            if status.st_size == 0:
                raise ImageError("empty file (0 bytes)")
            if status.st_size > MOST_BYTES:
                raise ImageError(f"{status.st_size:,} bytes; the limit is {MOST_BYTES:,}")
            return self.path.read_bytes()
        except ImageError:
            raise
        except (OSError, ValueError) as error:  # ValueError: an impossible name
            raise ImageError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None


@dataclass(frozen=True)
class ImageBytes:
    """An image file in memory, such as an upload.

    Examples
    --------
    >>> ImageBytes("upload.jpg", b"...").read()
    b'...'
    """

    name: str
    content: bytes

    def read(self) -> bytes:
        """Return the content."""
        if not self.content:
            raise ImageError("empty file (0 bytes)")
        return self.content


@dataclass(frozen=True, eq=False)
class ImageRow:
    """One row of an array of images: numpy, memory-mapped or HDF5; uint8, (height, width) or (height, width, 3).

    Examples
    --------
    >>> ImageRow(np.zeros((3, 8, 8), np.uint8), 1, "train.npz").name
    'train.npz[1]'
    """

    rows: Any
    index: int
    array_name: str

    @property
    def name(self) -> str:
        """The array and the row, as in `train.h5[17]`."""
        return f"{self.array_name}[{self.index}]"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the one row and not the whole array."""
        return ImageRow, ({self.index: self.read()}, self.index, self.array_name)

    def read(self) -> Pixels:
        """Return the pixels of the row."""
        try:
            pixels = np.asarray(self.rows[self.index])
        except Exception as error:  # HDF5 reads here; its filters raise errors of any type
            raise ImageError(f"cannot be read: {error or type(error).__name__}") from None
        if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] != 3):
            raise ImageError(
                f"pixels are {pixels.dtype} of shape {pixels.shape}; expected uint8 of shape (h, w) or (h, w, 3)"
            )
        return np.ascontiguousarray(pixels)


def content_hash(content: Content) -> bytes:
    """Return the 32-byte key of an image: the SHA-256 of the file, or of shape and pixels."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).digest()
    return hashlib.sha256(f"pixels {content.shape}\n".encode() + content.tobytes()).digest()


@dataclass(frozen=True)
class Walked:
    """The files below a folder, and the folders that were not entered; hidden ones are left out."""

    files: tuple[Path, ...]
    shut: frozenset[Path]


def walk(folder: str | os.PathLike[str]) -> Walked:
    """Walk through `folder` and links to other folders, but not into a folder without permission.

    A link is not followed if it leads into `folder`, to a folder around it, or where another link led to. So there is
    no loop.
    """
    root = Path(folder)
    if not root.is_dir():
        what = "is a file" if root.exists() else "does not exist"
        raise HyCalError(f"The folder {root} {what}; expected a folder of images. Check the path.")
    files: list[Path] = []
    shut: set[Path] = set()
    entered = [Path(os.path.realpath(root))]
    for parent, folders, names in os.walk(root, onerror=lambda error: shut.add(Path(error.filename)), followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in [Path(parent, name) for name in folders]:
            if path.is_symlink() and not _is_new(path, entered):
                shut.add(path)
                folders.remove(path.name)
        files += [Path(parent, name) for name in names if not name.startswith(".")]
    return Walked(tuple(files), frozenset(shut))


def _is_new(link: Path, entered: list[Path]) -> bool:
    """Whether a link leads to a folder apart from those that are entered; if so, it is one of them from now on."""
    target = Path(os.path.realpath(link))
    if any(target.is_relative_to(other) or other.is_relative_to(target) for other in entered):
        return False
    entered.append(target)
    return True


def pile_files(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the files below `folder` as `image_files` does, without tables: lists of labels may lie there too."""
    return [path for path in image_files(folder) if path.suffix.lower() not in TABLES]


def image_files(folder: str | os.PathLike[str]) -> list[Path]:
    """Return every file below `folder` in sorted order, without hidden ones.

    Files that are no images, and folders that were not entered, are included: the pipeline reports what it cannot
    decode, and no photograph is left out silently because of its suffix.
    """
    walked = walk(folder)
    return sorted((*walked.files, *walked.shut))
