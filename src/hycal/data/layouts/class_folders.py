"""Sets whose folders say it all: one folder per class, or train and test with one folder per class each."""

from __future__ import annotations

from pathlib import Path

from hycal.data.catalog import DataSetSpec
from hycal.data.folders import place_of
from hycal.data.layouts.lookup import below, how_to_get, need
from hycal.data.samples import ImageSet, Split, from_names
from hycal.embedding.sources import ImageFile, ImageSource
from hycal.errors import HyCalError

_IMAGES = {".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".webp"}


def read_class_folders(spec: DataSetSpec, root: Path) -> ImageSet:
    """FOLDER/CLASS/*; no split is published (EuroSAT, Caltech 101)."""
    return _read(spec, need(spec, root, spec.folder))


def read_split_folders(spec: DataSetSpec, root: Path) -> ImageSet:
    """{train,test}/CLASS/* (ArtBench-10)."""
    base = next((folder for folder in below(root) if (folder / "train").is_dir() and (folder / "test").is_dir()), None)
    if base is None:
        raise HyCalError(
            f"{spec.title}: there are no folders train and test side by side below {root}. Expected "
            f"train/CLASS/*.jpg and test/CLASS/*.jpg; {how_to_get(spec, root)}."
        )
    return _read(spec, base)


def _read(spec: DataSetSpec, base: Path) -> ImageSet:
    """Archives hold lists and notes beside the images, so here, unlike in a user's folder, the suffix decides."""
    entries: list[tuple[ImageSource, str, Split]] = []
    for path in sorted(base.rglob("*")):
        place = place_of(path.relative_to(base).parts[:-1], root_name=spec.name)
        if path.suffix.lower() in _IMAGES and place.label and place.label not in spec.ignore:
            entries.append((ImageFile(path), place.label, place.split))
    return from_names(spec.name, entries)
