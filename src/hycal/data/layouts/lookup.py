"""Search for the files of a data set below the folder of the user, in the layout of the published archive."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from hycal.data.catalog import DataSetSpec
from hycal.data.samples import ImageSet
from hycal.errors import HyCalError

Reader: TypeAlias = Callable[[DataSetSpec, Path], ImageSet]

_DEEPEST = 3  # ROOT/set/archive-name/data; deeper folders hold images


def below(root: Path) -> Iterator[Path]:
    """Yield `root` and the folders below it, level by level."""
    level = [root]
    yield root
    for _ in range(_DEEPEST):
        level = sorted(child for folder in level for child in _folders(folder))
        if len(level) > 2000:  # class folders of a large data set: only images are below
            return
        yield from level


def _folders(folder: Path) -> list[Path]:
    """Return the folders in `folder`, without links and hidden ones, and without a system call for each image."""
    with os.scandir(folder) as entries:
        return [
            Path(entry.path)
            for entry in entries
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
        ]


def dataset_folder(spec: DataSetSpec, root: Path) -> Path:
    """Return the folder of a data set in `root`, which holds a folder for each: by its name, or by an alias."""
    names = (spec.name, *spec.aliases)
    found = next((root / name for name in names if (root / name).is_dir()), None)
    if found is None:
        raise HyCalError(
            f"{root} has no folder {' or '.join(names)}; expected the files of {spec.title} in one of these. "
            f"Check the path; {how_to_get(spec, root / spec.name)}."
        )
    return found


def find(root: Path, relative: str) -> Path | None:
    """Return the nearest path ending in `relative` below `root`, or None."""
    return next((folder / relative for folder in below(root) if (folder / relative).exists()), None)


def need(spec: DataSetSpec, root: Path, relative: str) -> Path:
    """Return the nearest path ending in `relative`, or raise an error that says how to get it."""
    path = find(root, relative)
    if path is None:
        raise HyCalError(
            f"{spec.title}: there is no {relative} below {root}. Expected the layout in which the set is published; "
            f"{how_to_get(spec, root)}."
        )
    return path


def how_to_get(spec: DataSetSpec, root: Path) -> str:
    """Return how to get a complete copy, as the end of a sentence."""
    if not spec.files:
        return f"see docs/reference/data.md, and {spec.home} for where it comes from"
    return f"see docs/reference/data.md, or get it: {fetch_command(spec, root)}"


def fetch_command(spec: DataSetSpec, root: Path) -> str:
    """Return the command that downloads a data set."""
    return f"`hycal data fetch {spec.name} --root {shlex.quote(str(root))}`"


def beside(spec: DataSetSpec, root: Path, folder: Path, relative: str) -> Path:
    """Return `relative` in `folder`, as in the published archive, or else the nearest one below `root`."""
    path = folder / relative
    return path if path.exists() else need(spec, root, relative)


def lines_of(path: Path) -> list[str]:
    """Return the non-empty lines of a list file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise HyCalError(f"The list {path} cannot be read: {error}. Unpack the data set again.") from None
    return [line.strip() for line in text.splitlines() if line.strip()]
