"""Sets whose labels and splits are MATLAB files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from hycal.data.catalog import DataSetSpec
from hycal.data.layouts.lookup import beside, find, need
from hycal.data.samples import ImageSet, Sample, Split
from hycal.embedding.sources import ImageFile
from hycal.errors import HyCalError

_FLOWER_SPLITS: tuple[tuple[Split, str], ...] = (("train", "trnid"), ("val", "valid"), ("test", "tstid"))


def read_flowers(spec: DataSetSpec, root: Path) -> ImageSet:
    """jpg/image_00001.jpg, imagelabels.mat, setid.mat; class names from CoOp's cat_to_name.json if it is there."""
    label_file = need(spec, root, "imagelabels.mat")
    labels = _load(label_file, "labels").ravel()
    images = beside(spec, root, label_file.parent, "jpg")
    sets = beside(spec, root, label_file.parent, "setid.mat")
    samples = [
        Sample(ImageFile(images / f"image_{number:05d}.jpg"), int(labels[number - 1]) - 1, split)
        for split, key in _FLOWER_SPLITS
        for number in _load(sets, key).ravel().tolist()
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
    names = [str(name) for name in _load(need(spec, root, "devkit/cars_meta.mat"), "class_names").ravel()]
    files: tuple[tuple[Split, str], ...] = (
        ("train", "devkit/cars_train_annos.mat"),
        ("test", "cars_test_annos_withlabels.mat"),
    )
    samples = []
    for split, file in files:
        images = need(spec, root, f"cars_{split}")
        for annotation in np.atleast_1d(_load(need(spec, root, file), "annotations")):
            image = images / str(annotation["fname"])
            samples.append(Sample(ImageFile(image), int(annotation["class"]) - 1, split))
    return ImageSet(spec.name, tuple(_year_first(name) for name in names), tuple(samples))


def _year_first(name: str) -> str:
    """Name a car as CoOp does: "Audi TTS Coupe 2012" is a "2012 Audi TTS Coupe"."""
    words = name.split(" ")
    return " ".join([words[-1], *words[:-1]])


def _load(path: Path, key: str) -> Any:
    from scipy.io import loadmat

    try:
        return np.asarray(loadmat(path, squeeze_me=True)[key])
    except Exception as error:  # scipy's reader raises many kinds on a damaged file
        raise HyCalError(f"{path} is not the expected MATLAB file ({error}). Get it again.") from None
