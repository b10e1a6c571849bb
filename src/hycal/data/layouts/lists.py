"""Sets whose splits are text or JSON lists of image names."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from hycal.data.catalog import DataSetSpec
from hycal.data.layouts.lookup import beside, lines_of, need
from hycal.data.samples import ImageSet, Sample, Split, from_names
from hycal.embedding.sources import ImageFile, ImageSource
from hycal.errors import HyCalError

Entry = tuple[ImageSource, str, Split]


def read_aircraft(spec: DataSetSpec, root: Path) -> ImageSet:
    """variants.txt, images_variant_{train,val,test}.txt ("1025794 707-320"), images/1025794.jpg."""
    variants = need(spec, root, "variants.txt")
    classes = lines_of(variants)
    number = {name: position for position, name in enumerate(classes)}
    images = beside(spec, root, variants.parent, "images")
    samples = []
    for split in _splits("train", "val", "test"):
        path = beside(spec, root, variants.parent, f"images_variant_{split}.txt")
        for line in lines_of(path):
            image, _, variant = line.partition(" ")
            if variant not in number:
                raise HyCalError(f"{path}: {line!r} names no variant of variants.txt. Unpack the set again.")
            samples.append(Sample(ImageFile(images / f"{image}.jpg"), number[variant], split))
    return ImageSet(spec.name, tuple(classes), tuple(samples))


def read_dtd(spec: DataSetSpec, root: Path) -> ImageSet:
    """labels/{train,val,test}1.txt ("banded/banded_0002.jpg"), images/banded/banded_0002.jpg; split 1."""
    lists = need(spec, root, "labels/train1.txt").parent
    images = beside(spec, root, lists.parent, "images")

    def entries() -> Iterable[Entry]:
        for split in _splits("train", "val", "test"):
            for line in lines_of(beside(spec, root, lists, f"{split}1.txt")):
                yield ImageFile(images / line), line.partition("/")[0], split

    return from_names(spec.name, entries())


def read_food101(spec: DataSetSpec, root: Path) -> ImageSet:
    """meta/{train,test}.json ({"apple_pie": ["apple_pie/1005649", ...]}), images/apple_pie/1005649.jpg."""
    lists = need(spec, root, "meta/train.json").parent
    images = beside(spec, root, lists.parent, "images")

    def entries() -> Iterable[Entry]:
        for split in _splits("train", "test"):
            path = beside(spec, root, lists, f"{split}.json")
            try:
                listed: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                raise HyCalError(f"{path} cannot be read: {error}. Unpack the set again.") from None
            for label, files in listed.items():
                for file in files:
                    yield ImageFile(images / f"{file}.jpg"), label, split

    return from_names(spec.name, entries())


def read_pets(spec: DataSetSpec, root: Path) -> ImageSet:
    """annotations/{trainval,test}.txt ("Abyssinian_100 1 1 1"), images/Abyssinian_100.jpg."""
    lists = need(spec, root, "annotations/trainval.txt").parent
    images = beside(spec, root, lists.parent, "images")

    def entries() -> Iterable[Entry]:
        files: tuple[tuple[str, Split], ...] = (("trainval", "train"), ("test", "test"))
        for file, split in files:
            for line in lines_of(beside(spec, root, lists, f"{file}.txt")):
                if not line.startswith("#"):
                    image = line.split()[0]
                    yield ImageFile(images / f"{image}.jpg"), image.rpartition("_")[0].lower(), split

    return from_names(spec.name, entries())


def read_sun397(spec: DataSetSpec, root: Path) -> ImageSet:
    """{Training,Testing}_01.txt ("/a/abbey/sun_aaa.jpg"), SUN397/a/abbey/sun_aaa.jpg; partition 1 of 10."""
    images = need(spec, root, "SUN397")

    def entries() -> Iterable[Entry]:
        files: tuple[tuple[str, Split], ...] = (("Training_01", "train"), ("Testing_01", "test"))
        for file, split in files:
            for line in lines_of(need(spec, root, f"{file}.txt")):
                place = line.strip("/").split("/")
                yield ImageFile(images.joinpath(*place)), _scene(place[1:-1]), split

    return from_names(spec.name, entries())


def _scene(folders: list[str]) -> str:
    """Name a scene as CoOp does: church/outdoor is an "outdoor church"."""
    return " ".join(reversed(folders)).replace("_", " ")


def _splits(*names: Split) -> tuple[Split, ...]:
    return names
