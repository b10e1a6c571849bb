"""Finding the files of a data set below the folder that the user names, unpacked as it comes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from hycal.data.catalog import DataSetSpec
from hycal.errors import HyCalError

_DEEPEST = 3  # ROOT/set/archive-name/data; deeper are images


def below(root: Path, *, deepest: int = _DEEPEST) -> Iterator[Path]:
    """Yield `root` and the folders below it, the nearest first."""
    level = [root]
    yield root
    for _ in range(deepest):
        level = sorted(child for folder in level for child in _folders(folder))
        if len(level) > 2000:  # class folders of a large set: nothing but images below
            return
        yield from level


def _folders(folder: Path) -> list[Path]:
    """Return the folders in `folder`, links and hidden ones left out, without a look at each of 100,000 images."""
    with os.scandir(folder) as entries:
        return [
            Path(entry.path)
            for entry in entries
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
        ]


def find(root: Path, relative: str) -> Path | None:
    """Return the nearest path ending in `relative` below `root`, or None."""
    return next((folder / relative for folder in below(root) if (folder / relative).exists()), None)


def need(spec: DataSetSpec, root: Path, relative: str) -> Path:
    """Return the nearest path ending in `relative`, or say that it is missing."""
    path = find(root, relative)
    if path is None:
        raise HyCalError(
            f"{spec.title}: there is no {relative} below {root}. Expected the layout in which the set is published; "
            f"{how_to_get(spec, root)}."
        )
    return path


def how_to_get(spec: DataSetSpec, root: Path) -> str:
    """Return the ways to a complete copy, as the end of a sentence."""
    if not spec.files:
        return f"see docs/data.md, and {spec.home} for where it comes from"
    return f"see docs/data.md, or get it: `hycal data fetch {spec.name} --root {shlex.quote(str(root))}`"


def beside(spec: DataSetSpec, root: Path, folder: Path, relative: str) -> Path:
    """Return `relative` in `folder`, where the set's own archive has it, or else wherever below `root`."""
    path = folder / relative
    return path if path.exists() else need(spec, root, relative)


def lines_of(path: Path) -> list[str]:
    """Return the lines of a list file that are not empty."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise HyCalError(f"The list {path} cannot be read: {error}. Unpack the data set again.") from None
    return [line.strip() for line in text.splitlines() if line.strip()]
