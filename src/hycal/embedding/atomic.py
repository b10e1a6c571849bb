"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def replacing(target: Path, *, temporary: Path | None = None) -> Iterator[IO[bytes]]:
    """Yield a file to write; at the end it takes the name `target`, on the disk and in one step.

    Parameters
    ----------
    target : Path
    temporary : Path, optional
        What the file is called until then, in the same folder; by default a hidden name of this process's own.
    """
    part = temporary or target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` survive a power cut; Windows opens no folders, and needs no such call."""
    if os.name != "nt":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
