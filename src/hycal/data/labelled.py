"""Every image that a folder, a manifest or an array file offers, with what is known of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hycal.data.folders import place_of
from hycal.data.manifests import read_csv, read_jsonl
from hycal.data.npz import read_npz
from hycal.data.samples import ImageSet
from hycal.embedding.sources import ImageFile, ImageSource, walk
from hycal.errors import HyCalError


@dataclass(frozen=True)
class ListedImage:
    """One image; label, domain and split are "" where nothing says them."""

    source: ImageSource
    file: str
    label: str
    domain: str
    split: str


def _read_npz(path: Path) -> dict[str, ImageSet]:
    images = read_npz(path)
    return {images.name: images}


_FILES: Mapping[str, Callable[[Path], dict[str, ImageSet]]] = {
    ".csv": read_csv,
    ".jsonl": read_jsonl,
    ".npz": _read_npz,
}


def list_images(source: str | os.PathLike[str]) -> list[ListedImage]:
    """Return the images of a folder, in any depth and with or without class folders, or of a manifest."""
    path = Path(source)
    if path.is_file():
        return _from_file(path)
    found = []
    walked, root_name = walk(path), path.resolve().name
    for file in sorted((*walked.files, *walked.shut)):
        relative = file.relative_to(path)
        # A folder that was not entered is listed itself, in the place of the images that it may hold.
        folders = relative.parts if walked.shut and file in walked.shut else relative.parts[:-1]
        place = place_of(folders, root_name=root_name)
        listed = ListedImage(ImageFile(file), relative.as_posix(), place.label, place.domain, place.split)
        found.append(listed)
    if not found:
        raise HyCalError(f"The folder {path} has no files in it. Expected images, in class folders or without.")
    return found


def _from_file(path: Path) -> list[ListedImage]:
    suffix = path.suffix.lower()
    if suffix not in _FILES:
        raise HyCalError(f"{path} is a file; expected a folder of images, or one of {', '.join(_FILES)}.")
    return [
        ListedImage(
            sample.source, _file_of(sample.source, path), images.class_names[sample.label], images.name, sample.split
        )
        for images in _FILES[suffix](path).values()
        for sample in images.samples
    ]


def _file_of(source: ImageSource, manifest: Path) -> str:
    """Return the file as the manifest names it: a table must not depend on where it was made."""
    if isinstance(source, ImageFile) and source.path.is_relative_to(manifest.parent):
        return source.path.relative_to(manifest.parent).as_posix()
    return source.name
