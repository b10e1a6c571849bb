"""CoOp's split files: {"train": [[file, label, class name], ...], "val": [...], "test": [...]}.

The order of the lists is kept: the paper's few-shot draws follow the first appearance of each class.
"""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

from hycal.data.catalog import DataSetSpec
from hycal.data.layouts.lookup import beside, find, need
from hycal.data.samples import ImageSet, Sample, Split
from hycal.embedding.sources import ImageFile
from hycal.errors import HyCalError

_PARTS: tuple[Split, ...] = ("train", "val", "test")


def find_split_file(spec: DataSetSpec, root: Path) -> Path | None:
    """Return CoOp's split file for the set, if it has one and it is there."""
    return find(root, spec.split_file) if spec.split_file else None


def read_split_file(spec: DataSetSpec, root: Path) -> ImageSet:
    """Return the set with CoOp's split."""
    path = need(spec, root, spec.split_file)
    images = beside(spec, root, path.parent, spec.split_images)
    content = _load(path)
    names: dict[int, str] = {}
    samples = []
    for split in _PARTS:
        for entry in content.get(split, ()):
            file, label, name = _entry(entry, path)
            if names.setdefault(label, name) != name:
                raise HyCalError(f"{path} calls class {label} both {names[label]!r} and {name!r}. Get the file again.")
            samples.append(Sample(ImageFile(images / file), label, split))
    if sorted(names) != list(range(len(names))):
        raise HyCalError(f"{path}: labels are not 0 to {len(names) - 1} without gaps. Get the file again.")
    return ImageSet(spec.name, tuple(names[label] for label in sorted(names)), tuple(samples))


def _load(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise HyCalError(f"The split file {path} cannot be read: {error}. Get the file again.") from None
    if not isinstance(content, dict) or not set(_PARTS) <= content.keys():
        raise HyCalError(f"The split file {path} has no train, val and test lists. Get the file again.")
    return content


def _entry(entry: object, path: Path) -> tuple[str, int, str]:
    match entry:
        case [str(file), int(label), str(name)] if _is_inside(file):
            return file, label, name
    raise HyCalError(f"{path} has the entry {entry!r}; expected [file below the image folder, label, class name].")


def _is_inside(file: str) -> bool:
    """Split files travel by mail and drive folders: one must not be able to name a file elsewhere."""
    parts = PurePosixPath(file)
    return not parts.is_absolute() and ".." not in parts.parts and "\\" not in file
