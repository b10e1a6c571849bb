"""Small copies of all thirteen data sets with all their classes, in folders named by hycal, or by CoOp and the authors.

A class has two images to train and one to test. Classes first appear in the order of the paper's table of shots, which
is not that of their labels. Images of a validation split are listed, but there are none: nothing may read them.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from tests.support.datasets import idx, image, text


def published_shots() -> dict[str, dict[str, int]]:
    """Return the paper's table of K_c for seed 42: shots by class by domain, in the printed order."""
    shots: dict[str, dict[str, int]] = {}
    lines = Path(__file__).with_name("shots-seed-42.csv").read_text(encoding="utf-8").splitlines()
    for row in csv.DictReader(lines):
        shots.setdefault(row["domain"], {})[row["class"]] = int(row["shots"])
    return shots


CLASSES: Mapping[str, tuple[str, ...]] = {
    **{name: tuple(shots) for name, shots in published_shots().items()},
    **{
        name: tuple(f"{name} {number}" for number in reversed(range(count)))
        for name, count in {"caltech101": 100, "food101": 101, "pets": 37, "cars": 196, "sun397": 397}.items()
    },
}
_DIGITS = (5, 0, 4, 1, 9, 2, 3, 6, 7, 8)  # in which the digits first appear in MNIST
_EUROSAT = ("AnnualCrop", "Forest", "HerbaceousVegetation", "Highway", "Industrial")
_EUROSAT += ("Pasture", "PermanentCrop", "Residential", "River", "SeaLake")
_AUTHORS = {
    "aircraft": "fgvc_aircraft",
    "artbench": "ArtBench10/artbench-10-imagefolder-split",
    "galaxy": "Galaxy10_DECals",
    "mnist": "MNIST",
    "organ": "MedMNIST/OrganAMNIST",
    "flowers": "oxford_flowers",
    "caltech101": "caltech-101",
    "food101": "food-101",
    "pets": "oxford_pets",
    "cars": "stanford_cars",
}


def write_copies(root: Path, naming: str) -> None:
    """Write every data set below `root`; `naming` is "hycal" or "authors"."""
    folder = {name: root / (_AUTHORS.get(name, name) if naming == "authors" else name) for name in CLASSES}
    pictures = _Pictures(root / "pictures")
    _aircraft(folder["aircraft"] / ("" if naming == "authors" else "fgvc-aircraft-2013b/data"), pictures)
    for split, numbers in (("train", (0, 1)), ("test", (2,))):
        for style in CLASSES["artbench"]:
            label = style.lower().replace(" ", "_").replace("-", "_")
            pictures.link(folder["artbench"] / split / label / f"{number}.jpg" for number in numbers)
    _galaxy(folder["galaxy"])
    _mnist(folder["mnist"] / "raw")
    _organ(folder["organ"], exported=naming == "authors")
    _coop(folder["dtd"], "split_zhou_DescribableTextures.json", "images", CLASSES["dtd"], pictures)
    _coop(folder["eurosat"], "split_zhou_EuroSAT.json", "2750", CLASSES["eurosat"], pictures, folders=_EUROSAT)
    _coop(folder["flowers"], "split_zhou_OxfordFlowers.json", "jpg", CLASSES["flowers"], pictures)
    _coop(folder["caltech101"], "split_zhou_Caltech101.json", "101_ObjectCategories", CLASSES["caltech101"], pictures)
    _coop(folder["food101"], "split_zhou_Food101.json", "images", CLASSES["food101"], pictures)
    _coop(folder["pets"], "split_zhou_OxfordPets.json", "images", CLASSES["pets"], pictures)
    _coop(folder["cars"], "split_zhou_StanfordCars.json", "cars_train", CLASSES["cars"], pictures, inside="cars_train")
    _coop(folder["sun397"], "split_zhou_SUN397.json", "SUN397", CLASSES["sun397"], pictures)
    for other in ("train", "val", "test"):  # the publisher's split of textures, which the paper does not use
        text(folder["dtd"] / "labels" / f"{other}1.txt", [f"{name}/9.jpg" for name in CLASSES["dtd"]])


class _Pictures:
    """A few pictures, linked wherever an image is wanted: thousands of files are made in no time."""

    def __init__(self, folder: Path) -> None:
        self._files = [image(folder / f"{number}.jpg", number) for number in range(40)]
        self._next = 0

    def link(self, places: Iterable[Path]) -> None:
        for place in places:
            place.parent.mkdir(parents=True, exist_ok=True)
            os.link(self._files[self._next % len(self._files)], place)
            self._next += 1


def _aircraft(folder: Path, pictures: _Pictures) -> None:
    text(folder / "variants.txt", CLASSES["aircraft"])
    for split, numbers in (("train", (0, 1)), ("val", (9,)), ("test", (2,))):
        listed = [(f"{place:04}{n}", name) for place, name in enumerate(CLASSES["aircraft"]) for n in numbers]
        text(folder / f"images_variant_{split}.txt", [f"{file} {name}" for file, name in listed])
        (folder / "images").mkdir(exist_ok=True)
        if split != "val":
            pictures.link(folder / "images" / f"{file}.jpg" for file, _ in listed)


def _coop(
    folder: Path,
    split_file: str,
    images: str,
    classes: Sequence[str],
    pictures: _Pictures,
    *,
    folders: Sequence[str] | None = None,
    inside: str = "",
) -> None:
    """Write a split file and the images that its training and test lists name; labels are in alphabetical order."""
    label = {name: number for number, name in enumerate(sorted(classes))}
    listed: dict[str, list[tuple[str, int, str]]] = {"train": [], "val": [], "test": []}
    for name, below in zip(classes, folders or classes, strict=True):
        for split, numbers in (("train", (0, 1)), ("val", (9,)), ("test", (2,))):
            listed[split] += [(str(Path(inside, below, f"{n}.jpg")), label[name], name) for n in numbers]
    text(folder / split_file, [json.dumps(listed)])
    base = folder if inside else folder / images
    pictures.link(base / file for split in ("train", "test") for file, _, _ in listed[split])


def _galaxy(folder: Path) -> None:
    import h5py

    folder.mkdir(parents=True)
    with h5py.File(folder / "Galaxy10_DECals.h5", "w") as file:
        file["images"] = np.random.default_rng(0).integers(0, 256, (200, 16, 16, 3), dtype=np.uint8)
        file["ans"] = np.repeat(np.arange(10), 20).astype(np.uint8)


def _mnist(folder: Path) -> None:
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    for prefix, labels in (("train", np.repeat(_DIGITS, 2)), ("t10k", np.arange(10))):
        images = random.integers(0, 256, (len(labels), 28, 28))
        (folder / f"{prefix}-images-idx3-ubyte").write_bytes(idx(images))
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(idx(np.asarray(labels)))


def _organ(folder: Path, *, exported: bool) -> None:
    names = ("bladder", "left femur", "right femur", "heart", "left kidney", "right kidney")
    names += ("liver", "left lung", "right lung", "pancreas", "spleen")
    order = [names.index(name) for name in CLASSES["organ"]]
    random, arrays, lines = np.random.default_rng(0), {}, []
    folder.mkdir(parents=True)
    for split, labels in (("train", np.repeat(order, 2)), ("val", np.array([0])), ("test", np.arange(11))):
        arrays[f"{split}_images"] = random.integers(0, 256, (len(labels), 224, 224), dtype=np.uint8)
        arrays[f"{split}_labels"] = labels.astype(np.uint8)[:, None]
        word = "VALIDATION" if split == "val" else split.upper()
        lines += [f"{word},{split}{number}_{label}.png,{label}" for number, label in enumerate(labels)]
    if not exported:
        np.savez(folder / "organamnist_224.npz", **arrays)
        return
    text(folder / "organamnist_224.csv", lines)
    (folder / "organamnist_224").mkdir()
    rows = [pixels for split in ("train", "val", "test") for pixels in arrays[f"{split}_images"]]
    for line, pixels in zip(lines, rows, strict=True):
        Image.fromarray(pixels).save(folder / "organamnist_224" / line.split(",")[1])
