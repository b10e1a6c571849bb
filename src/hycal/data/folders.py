"""Folders of class folders: CLASS/*, SPLIT/CLASS/*, DOMAIN/CLASS/* and DOMAIN/SPLIT/CLASS/*."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from hycal.data.samples import ImageSet, Split, from_names, split_of
from hycal.embedding.sources import ImageFile, ImageSource, image_files
from hycal.errors import HyCalError


@dataclass(frozen=True)
class Place:
    """What the folders above a file say about it; "" where they say nothing."""

    domain: str
    split: Split
    label: str


def place_of(folders: tuple[str, ...], *, root_name: str) -> Place:
    """Read the folders between the root and a file.

    Examples
    --------
    >>> place_of(("cats",), root_name="pets")
    Place(domain='pets', split='', label='cats')
    >>> place_of(("digit", "test", "7"), root_name="xd8")
    Place(domain='digit', split='test', label='7')
    """
    if not folders:
        return Place(root_name, "", "")
    for position in (0, 1):
        if len(folders) > position + 1:
            split = split_of(folders[position])
            if split:
                domain = folders[0] if position else root_name
                return Place(domain, split, folders[position + 1])
    if len(folders) == 1:
        return Place(root_name, "", folders[0])
    return Place(folders[0], "", folders[1])


def read_folder(root: str | os.PathLike[str]) -> dict[str, ImageSet]:
    """Return the image sets below `root` by domain; one set, named as the folder, if it is one domain.

    Folders called train, val or test (or validation, training, ...) that hold class folders are splits, and
    what lies deeper belongs to the class. Without splits, two levels of folders are domain and class.
    """
    base = Path(root)
    paths = image_files(base)
    if not paths:
        raise HyCalError(f"The folder {base} has no files. Expected class folders with images in them.")
    found: dict[str, list[tuple[ImageSource, str, Split]]] = defaultdict(list)
    root_name = base.resolve().name
    for path in paths:
        place = place_of(path.relative_to(base).parts[:-1], root_name=root_name)
        if place.label:
            found[place.domain].append((ImageFile(path), place.label, place.split))
    if not found:
        raise HyCalError(
            f"The folder {base} has {len(paths)} files but no class folders. Put the images of each class in "
            f"a folder named after the class: {base / 'cat' / '1.jpg'}."
        )
    return {domain: from_names(domain, entries) for domain, entries in sorted(found.items())}
