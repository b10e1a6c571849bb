"""The manifest of a sorted folder: which file goes where, written before the first file is touched.

It is a file of JSON lines in the sorted folder. The first line says how the folder was sorted and which folders were
made for it; each further line has one image. Everything that moves is in it beforehand, so a run that was killed can be
finished, or undone, from the manifest and the files alone. Paths are relative: `source` to the folder that is sorted,
`target` to the sorted folder.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from hycal.errors import HyCalError
from hycal.escaping import json_text
from hycal.storage.atomic import write_whole

Way = Literal["copy", "move", "link"]
Layout = Literal["folders", "imagefolder", "coco"]

NAME = "hycal-sort.jsonl"
LISTS = CSV, COCO = "sorted.csv", "annotations.json"
WAYS: tuple[Way, ...] = ("copy", "move", "link")
LAYOUTS: tuple[Layout, ...] = ("folders", "imagefolder", "coco")
PLACES = SORTED, UNSURE, UNKNOWN = "sorted", "unsure", "unknown"
_VERSION = 1
_MARK = b'{"hycal-sort": 1,'


@dataclass(frozen=True)
class PlannedMove:
    """One image."""

    # Where it was, and where it goes.
    source: str
    target: str
    sha256: str  # of its content when it was sorted
    place: str  # "sorted", "unsure" or "unknown"
    label: str  # the best class
    probability: float  # that of the best class
    sidecar: str = ""  # its file of keywords, relative to the sorted folder; "" for none


@dataclass(frozen=True)
class Manifest:
    """How a folder was sorted."""

    folder: Path  # the folder that is sorted
    way: Way  # "copy", "move" or "link"
    layout: Layout  # "folders", "imagefolder" or "coco"
    # The folders that were made for it, relative to the sorted folder, "." for itself; parents come first.
    made: tuple[str, ...] = ()
    written: tuple[str, ...] = ()  # lists that hycal wrote into the sorted folder: a CSV table, COCO annotations
    done: int = 0  # so many of the first entries are in place; a run that was killed may have placed some of the others
    entries: tuple[PlannedMove, ...] = field(default=(), repr=False)


def read_manifest(out: Path) -> Manifest | None:
    """Return the manifest of a sorted folder; None if it has none."""
    path = out / NAME
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise HyCalError(f"{path} is a link, a pipe or a folder; expected the manifest of `hycal sort`.")
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise HyCalError(f"The manifest {path} cannot be read: {error}. Nothing was changed.") from None
    try:
        head, *entries = (json.loads(line) for line in lines)
        if head.pop("hycal-sort") != _VERSION:
            raise ValueError("it has another version")
        return _manifest(head, entries)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise HyCalError(
            f"{path} is not a manifest of `hycal sort`: {error}. Nothing was changed; the sorted folder is as it was."
        ) from None


def _manifest(head: dict[str, Any], entries: Sequence[dict[str, Any]]) -> Manifest:
    found = tuple(PlannedMove(**entry) for entry in entries)
    made, written = (tuple(map(str, head[name])) for name in ("made", "written"))
    for path in (*made, *written, *(path for entry in found for path in (entry.target, entry.sidecar, entry.source))):
        _check_inside(path)
    if type(head["done"]) is not int or not 0 <= head["done"] <= len(found):
        raise ValueError("more images are done than it has")
    if head["way"] not in WAYS or head["layout"] not in LAYOUTS or not set(written) <= set(LISTS):
        raise ValueError("its way, layout or lists are unknown")
    for move in found:
        texts = all(isinstance(text, str) for text in (move.label, move.sha256))
        if not texts or move.place not in PLACES or not 0.0 <= move.probability <= 1.0:
            raise ValueError(f"the line of {move.source!r} has values of wrong types")
    if not Path(head["folder"]).is_absolute():
        raise ValueError("its folder is not an absolute path")
    return Manifest(Path(head["folder"]), head["way"], head["layout"], made, written, head["done"], found)


def _check_inside(path: str) -> None:
    """Refuse a path that leaves its folder: a manifest may come from a stranger, and undo removes what it names."""
    parts = Path(path).parts
    if Path(path).is_absolute() or ".." in parts or "\0" in path:
        raise ValueError(f"the path {path!r} leaves its folder")
    if any(part.startswith(".") for part in parts):
        raise ValueError(f"the path {path!r} is hidden, and hidden files are never sorted")


def write_manifest(out: Path, manifest: Manifest) -> None:
    """Write the manifest in one step, and sync it to the disk."""
    head = {
        "hycal-sort": _VERSION,
        "folder": str(manifest.folder),
        "way": manifest.way,
        "layout": manifest.layout,
        "made": manifest.made,
        "written": manifest.written,
        "done": manifest.done,
    }
    lines = (json_text(line) for line in (head, *map(asdict, manifest.entries)))
    write_whole(out / NAME, "".join(f"{line}\n" for line in lines).encode("ascii"), mark=_MARK)
