"""Finding the files of a data set below the folder that the user names, unpacked as it comes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hycal.data.catalog import DataSetSpec
from hycal.errors import HyCalError

_DEEPEST = 3  # ROOT/set/archive-name/data; deeper are images


def below(root: Path, *, deepest: int = _DEEPEST) -> Iterator[Path]:
    """Yield `root` and the folders below it, the nearest first."""
    level = [root]
    for _ in range(deepest + 1):
        yield from level
        level = sorted(
            child
            for folder in level
            for child in folder.iterdir()
            if child.is_dir() and not child.is_symlink() and not child.name.startswith(".")
        )
        if len(level) > 2000:  # class folders of a large set: nothing but images below
            return


def find(root: Path, relative: str) -> Path | None:
    """Return the nearest path ending in `relative` below `root`, or None."""
    return next((folder / relative for folder in below(root) if (folder / relative).exists()), None)


def need(spec: DataSetSpec, root: Path, relative: str) -> Path:
    """Return the nearest path ending in `relative`, or say that it is missing."""
    path = find(root, relative)
    if path is None:
        raise HyCalError(
            f"{spec.title}: there is no {relative} below {root}. Expected the layout in which the set is "
            f"published; see docs/data.md, or `hycal data fetch {spec.name}`."
        )
    return path


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
