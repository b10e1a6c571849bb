"""From files of labels to images: which file each label means, and that none lies outside of the folder of the images.

The labels of people are taken. Predictions, and images without a label, are left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

from hycal.data.annotations import ImageLabel, read_labels
from hycal.data.samples import ListedImage, split_of
from hycal.embedding.sources import ImageFile
from hycal.errors import HyCalError
from hycal.validation import normal_name


def list_labelled(
    source: Path,
    *,
    images: Path | None = None,
    outside: bool = False,
    read: Callable[[Path], list[ImageLabel]] = read_labels,
) -> list[ListedImage]:
    """Return the labelled images of a file of labels, domain by domain.

    `images` is the folder of the images; by default that of the file. `outside` says whether the file may name images
    outside of that folder. `read` reads the labels; by default the reader of its format.
    """
    root = source.parent if images is None else images
    if not root.is_dir():
        raise HyCalError(f"There is no folder {root}. Expected the folder of the images that {source} names.")
    inside = _inside(root)
    labels = read(source)
    found = [
        _listed(item, source, root, None if outside else inside)
        for item in labels
        if not item.predicted and (item.label or item.problem)
    ]
    if not found:
        predictions = sum(item.predicted and bool(item.label) for item in labels)
        raise HyCalError(
            f"The manifest {source} lists no images with a label"
            + (f" of a person; {predictions:,} have a prediction, which is not learned" if predictions else "")
            + ". Expected some that a person has labelled."
        )
    return sorted(_first_labels(found), key=lambda image: image.domain)


def _first_labels(images: list[ListedImage]) -> list[ListedImage]:
    """Return the images, where a second label of a file that differs from its first is a problem."""
    first: dict[str, tuple[str, str]] = {}
    kept = []
    for image in images:
        own = (image.domain, image.label)
        known = first.setdefault(image.file, own) if image.label else own
        differs = f"has the label {'/'.join(known)} too; a model learns one class of an image"
        kept.append(image if known == own else replace(image, label="", problem=differs))
    return kept


def _inside(root: Path) -> Callable[[Path], bool]:
    real = os.path.realpath(root)

    @cache
    def is_inside(folder: Path) -> bool:
        return Path(os.path.realpath(folder)).is_relative_to(real)

    return is_inside


def _listed(item: ImageLabel, source: Path, root: Path, inside: Callable[[Path], bool] | None) -> ListedImage:
    split = split_of(item.split)
    if split is None:
        raise HyCalError(f"{source}, {item.where}: split {item.split!r}; expected train, val, test or none.")
    domain, label = normal_name(item.domain or source.stem), normal_name(item.label)
    path = _path(item, source, root, inside)
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
    return ListedImage(ImageFile(path), name, label, domain, split, item.problem)


def _path(item: ImageLabel, source: Path, root: Path, inside: Callable[[Path], bool] | None) -> Path:
    """Return the first of the paths that an image may have at which there is a file, or the first of all."""
    paths = [root / file for file in (item.file, *item.elsewhere)]
    try:
        for path, file in zip(paths, (item.file, *item.elsewhere), strict=True):
            if inside is not None and not inside(path.parent):
                raise HyCalError(
                    f"{source}, {item.where}: {file!r} is outside of the folder of the images, so nothing was read. "
                    f"Expected images in {root}; --outside allows others, if you trust the file, and --images names "
                    "another folder."
                )
        return next((path for path in paths if path.is_file()), paths[0]) if item.elsewhere else paths[0]
    except HyCalError:
        raise
    except ValueError:  # a NUL, or half a surrogate pair
        raise HyCalError(
            f"{source}, {item.where}: no file can be called {item.file!r}. Correct the manifest."
        ) from None
