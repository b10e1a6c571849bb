"""Data sets whose images are files; the labels are in folders, text lists, JSON lists or MATLAB files.

The docstring of each reader shows the published files of its layout.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from hycal.data.catalog import DataSetSpec
from hycal.data.layouts.lookup import Reader, below, beside, find, how_to_get, lines_of, need
from hycal.data.readers import place_of
from hycal.data.samples import ImageSet, NamedSample, Sample, Split, from_names
from hycal.embedding.sources import ImageFile
from hycal.errors import HyCalError

_SUFFIXES = {".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".webp"}
_PARTS: tuple[Split, ...] = ("train", "val", "test")
_FLOWER_SPLITS: tuple[tuple[Split, str], ...] = (("train", "trnid"), ("val", "valid"), ("test", "tstid"))


def _of_names(read: Callable[[DataSetSpec, Path], Iterable[NamedSample]]) -> Reader:
    """Return the reader of the samples that `read` yields, with its classes in sorted order."""

    @wraps(read)
    def reader(spec: DataSetSpec, root: Path) -> ImageSet:
        return from_names(spec.name, read(spec, root))

    return reader


def read_class_folders(spec: DataSetSpec, root: Path) -> ImageSet:
    """FOLDER/CLASS/*; no split is published (EuroSAT, Caltech 101)."""
    return _read_folders(spec, need(spec, root, spec.folder))


def read_split_folders(spec: DataSetSpec, root: Path) -> ImageSet:
    """{train,test}/CLASS/* (ArtBench-10)."""
    base = next((folder for folder in below(root) if (folder / "train").is_dir() and (folder / "test").is_dir()), None)
    if base is None:
        raise HyCalError(
            f"{spec.title}: there are no folders train and test side by side below {root}. Expected "
            f"train/CLASS/*.jpg and test/CLASS/*.jpg; {how_to_get(spec, root)}."
        )
    return _read_folders(spec, base)


def _read_folders(spec: DataSetSpec, base: Path) -> ImageSet:
    """Read the files with the suffix of an image: an archive may hold lists and notes beside the images."""
    entries: list[NamedSample] = []
    for path in sorted(base.rglob("*")):
        place = place_of(path.relative_to(base).parts[:-1], root_name=spec.name)
        if path.suffix.lower() in _SUFFIXES and place.label and place.label not in spec.ignore:
            entries.append((ImageFile(path), place.label, place.split))
    return from_names(spec.name, entries)


def read_aircraft(spec: DataSetSpec, root: Path) -> ImageSet:
    """variants.txt, images_variant_{train,val,test}.txt ("1025794 707-320"), images/1025794.jpg."""
    variants = need(spec, root, "variants.txt")
    classes = lines_of(variants)
    number = {name: position for position, name in enumerate(classes)}
    images = beside(spec, root, variants.parent, "images")
    samples = []
    for split in _PARTS:
        path = beside(spec, root, variants.parent, f"images_variant_{split}.txt")
        for line in lines_of(path):
            image, _, variant = line.partition(" ")
            if variant not in number:
                raise HyCalError(f"{path}: {line!r} names no variant of variants.txt. Unpack the set again.")
            samples.append(Sample(ImageFile(images / f"{image}.jpg"), number[variant], split))
    return ImageSet(spec.name, tuple(classes), tuple(samples))


@_of_names
def read_dtd(spec: DataSetSpec, root: Path) -> Iterator[NamedSample]:
    """labels/{train,val,test}1.txt ("banded/banded_0002.jpg"), images/banded/banded_0002.jpg; split 1."""
    lists = need(spec, root, "labels/train1.txt").parent
    images = beside(spec, root, lists.parent, "images")
    for split in _PARTS:
        for line in lines_of(beside(spec, root, lists, f"{split}1.txt")):
            yield ImageFile(images / line), line.partition("/")[0], split


@_of_names
def read_food101(spec: DataSetSpec, root: Path) -> Iterator[NamedSample]:
    """meta/{train,test}.json ({"apple_pie": ["apple_pie/1005649", ...]}), images/apple_pie/1005649.jpg."""
    lists = need(spec, root, "meta/train.json").parent
    images = beside(spec, root, lists.parent, "images")
    for split in _PARTS[::2]:
        path = beside(spec, root, lists, f"{split}.json")
        try:
            listed: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise HyCalError(f"{path} cannot be read: {error}. Unpack the set again.") from None
        for label, files in listed.items():
            for file in files:
                yield ImageFile(images / f"{file}.jpg"), label, split


@_of_names
def read_pets(spec: DataSetSpec, root: Path) -> Iterator[NamedSample]:
    """annotations/{trainval,test}.txt ("Abyssinian_100 1 1 1"), images/Abyssinian_100.jpg."""
    lists = need(spec, root, "annotations/trainval.txt").parent
    images = beside(spec, root, lists.parent, "images")
    files: tuple[tuple[str, Split], ...] = (("trainval", "train"), ("test", "test"))
    for file, split in files:
        for line in lines_of(beside(spec, root, lists, f"{file}.txt")):
            if not line.startswith("#"):
                image = line.split()[0]
                yield ImageFile(images / f"{image}.jpg"), image.rpartition("_")[0].lower(), split


@_of_names
def read_sun397(spec: DataSetSpec, root: Path) -> Iterator[NamedSample]:
    """{Training,Testing}_01.txt ("/a/abbey/sun_aaa.jpg"), SUN397/a/abbey/sun_aaa.jpg; partition 1 of 10."""
    images = need(spec, root, "SUN397")
    files: tuple[tuple[str, Split], ...] = (("Training_01", "train"), ("Testing_01", "test"))
    for file, split in files:
        for line in lines_of(need(spec, root, f"{file}.txt")):
            place = line.strip("/").split("/")
            yield ImageFile(images.joinpath(*place)), _scene(place[1:-1]), split


def _scene(folders: list[str]) -> str:
    """Name a scene as CoOp does: church/outdoor is an "outdoor church"."""
    return " ".join(reversed(folders)).replace("_", " ")


def read_flowers(spec: DataSetSpec, root: Path) -> ImageSet:
    """jpg/image_00001.jpg, imagelabels.mat, setid.mat; class names from CoOp's cat_to_name.json if it is there."""
    label_file = need(spec, root, "imagelabels.mat")
    labels = _load_matlab(label_file, "labels").ravel()
    images = beside(spec, root, label_file.parent, "jpg")
    sets = beside(spec, root, label_file.parent, "setid.mat")
    samples = [
        Sample(ImageFile(images / f"image_{number:05d}.jpg"), int(labels[number - 1]) - 1, split)
        for split, key in _FLOWER_SPLITS
        for number in _load_matlab(sets, key).ravel().tolist()
    ]
    return ImageSet(spec.name, _flower_names(root, int(labels.max())), tuple(samples))


def _flower_names(root: Path, count: int) -> tuple[str, ...]:
    path = find(root, "cat_to_name.json")
    if path is None:
        return tuple(f"flower {number}" for number in range(1, count + 1))
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
        return tuple(str(names[str(number)]) for number in range(1, count + 1))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HyCalError(
            f'{path} does not name the {count} flowers: {error!r}. Expected {{"1": name, ...}}; get it again.'
        ) from None


def read_cars(spec: DataSetSpec, root: Path) -> ImageSet:
    """cars_{train,test}/00001.jpg, devkit/cars_{meta,train_annos}.mat, cars_test_annos_withlabels.mat."""
    names = [str(name) for name in _load_matlab(need(spec, root, "devkit/cars_meta.mat"), "class_names").ravel()]
    files: tuple[tuple[Split, str], ...] = (
        ("train", "devkit/cars_train_annos.mat"),
        ("test", "cars_test_annos_withlabels.mat"),
    )
    samples = []
    for split, file in files:
        images = need(spec, root, f"cars_{split}")
        for annotation in np.atleast_1d(_load_matlab(need(spec, root, file), "annotations")):
            image = images / str(annotation["fname"])
            samples.append(Sample(ImageFile(image), int(annotation["class"]) - 1, split))
    return ImageSet(spec.name, tuple(_year_first(name) for name in names), tuple(samples))


def _year_first(name: str) -> str:
    """Name a car as CoOp does: "Audi TTS Coupe 2012" is a "2012 Audi TTS Coupe"."""
    words = name.split(" ")
    return " ".join([words[-1], *words[:-1]])


def _load_matlab(path: Path, key: str) -> Any:
    from scipy.io import loadmat

    try:
        return np.asarray(loadmat(path, squeeze_me=True)[key])
    except Exception as error:  # scipy's reader raises many kinds on a damaged file
        raise HyCalError(f"{path} is not the expected MATLAB file ({error}). Get it again.") from None


def find_split_file(spec: DataSetSpec, root: Path) -> Path | None:
    """Return the CoOp split file of the data set, or None if there is none."""
    return find(root, spec.split_file) if spec.split_file else None


def read_split_file(spec: DataSetSpec, root: Path) -> ImageSet:
    """Read CoOp's split file: {"train": [[file, label, class name], ...], "val": [...], "test": [...]}.

    The samples keep the order of the lists: the paper's few-shot draws follow the first appearance of each class.
    """
    path = need(spec, root, spec.split_file)
    images = beside(spec, root, path.parent, spec.split_images)
    content = _load_split_file(path)
    names: dict[int, str] = {}
    samples = []
    for split in _PARTS:
        for entry in content[split]:
            file, label, name = _split_entry(entry, path)
            if names.setdefault(label, name) != name:
                raise HyCalError(f"{path} calls class {label} both {names[label]!r} and {name!r}. Get the file again.")
            samples.append(Sample(ImageFile(images / file), label, split))
    if sorted(names) != list(range(len(names))):
        raise HyCalError(f"{path}: labels are not 0 to {len(names) - 1} without gaps. Get the file again.")
    return ImageSet(spec.name, tuple(names[label] for label in sorted(names)), tuple(samples))


def split_counts(path: Path) -> dict[str, int]:
    """Return the number of images that a split file lists in each split."""
    content = _load_split_file(path)
    return {split: len(content[split]) for split in _PARTS}


def _load_split_file(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise HyCalError(f"The split file {path} cannot be read: {error}. Get the file again.") from None
    if not isinstance(content, dict) or not all(isinstance(content.get(split), list) for split in _PARTS):
        raise HyCalError(f"The split file {path} has no train, val and test lists. Get the file again.")
    return content


def _split_entry(entry: object, path: Path) -> tuple[str, int, str]:
    match entry:
        case [str(file), int(label), str(name)] if _is_inside(file):
            return file, label, name
    raise HyCalError(f"{path} has the entry {entry!r}; expected [file below the image folder, label, class name].")


def _is_inside(file: str) -> bool:
    """Return whether `file` is below the image folder: a split file of a stranger must not name a file elsewhere."""
    parts = PurePosixPath(file)
    return not parts.is_absolute() and ".." not in parts.parts and "\\" not in file


LAYOUTS: Mapping[str, Reader] = {
    "aircraft": read_aircraft,
    "cars": read_cars,
    "class_folders": read_class_folders,
    "dtd": read_dtd,
    "flowers": read_flowers,
    "food101": read_food101,
    "pets": read_pets,
    "split_folders": read_split_folders,
    "sun397": read_sun397,
}
