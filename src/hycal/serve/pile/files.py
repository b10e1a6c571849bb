"""The files of a pile: where they are, and what may be read of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hycal.embedding.sources import ImageError, ImageFile, pile_files
from hycal.errors import HyCalError

_SPREAD = (5**0.5 - 1) / 2  # multiples of it fill the interval evenly


@dataclass(frozen=True)
class PileFile:
    """A file of a pile: the name to show, a path below the folder or what a client called it, and where it is.

    `root` is the folder that it may not lead out of.
    """

    name: str
    path: Path
    root: Path

    def read(self, most_bytes: int) -> bytes:
        """Return the content; an ImageError if it is too large, no file, or a link out of the folder by now."""
        if not Path(os.path.realpath(self.path)).is_relative_to(self.root):
            raise ImageError("a link that leads out of the folder")
        with contextlib.suppress(OSError):
            if (size := self.path.stat().st_size) > most_bytes:
                raise ImageError(f"{size:,} bytes; the limit is {most_bytes:,}")
        return ImageFile(self.path).read()


@dataclass(frozen=True)
class PileSource:
    """A file of a pile as a source of the encoder. Its name is its number, because two may have the same name."""

    name: str
    file: PileFile
    most_bytes: int

    def read(self) -> bytes:
        """Return the content."""
        return self.file.read(self.most_bytes)


def spread(files: Sequence[PileFile]) -> list[PileFile]:
    """Return files in an order of which every beginning is spread evenly over all of them."""
    places = (np.arange(len(files)) * _SPREAD) % 1.0
    return [files[at] for at in np.argsort(places)]


def files_of(folder: Path) -> list[PileFile]:
    """Return the files below a folder. A link that leads out of it is left out: nobody gave leave to read there."""
    root = Path(os.path.realpath(folder))
    paths = [path for path in pile_files(root) if Path(os.path.realpath(path)).is_relative_to(root)]
    if not paths:
        raise HyCalError(f"The folder {folder} has no files in it. Expected images to label.")
    return [PileFile(path.relative_to(root).as_posix(), path, root) for path in paths]


def remove(files: Iterable[PileFile]) -> None:
    """Remove files, if they are there."""
    for file in files:
        file.path.unlink(missing_ok=True)
