"""Readers of the data sets in the layouts in which they are published; `READERS` finds them by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from hycal.data.catalog import DataSetSpec, find_dataset
from hycal.data.layouts.arrays import read_galaxy10, read_medmnist, read_mnist
from hycal.data.layouts.class_folders import read_class_folders, read_split_folders
from hycal.data.layouts.lists import read_aircraft, read_dtd, read_food101, read_pets, read_sun397
from hycal.data.layouts.lookup import how_to_get
from hycal.data.layouts.matlab import read_cars, read_flowers
from hycal.data.layouts.split_file import find_split_file, read_split_file
from hycal.data.samples import ImageSet
from hycal.errors import HyCalError

READERS: Mapping[str, Callable[[DataSetSpec, Path], ImageSet]] = {
    "aircraft": read_aircraft,
    "cars": read_cars,
    "class_folders": read_class_folders,
    "dtd": read_dtd,
    "flowers": read_flowers,
    "food101": read_food101,
    "galaxy10": read_galaxy10,
    "medmnist": read_medmnist,
    "mnist": read_mnist,
    "pets": read_pets,
    "split_folders": read_split_folders,
    "sun397": read_sun397,
}


def read_dataset(name: str, root: str | os.PathLike[str]) -> ImageSet:
    """Return the data set `name`, whose files are somewhere below `root`.

    CoOp's split is used where its file lies beside the images, as the paper does; the publisher's otherwise.
    """
    spec = find_dataset(name)
    base = Path(root)
    if not base.is_dir():
        raise HyCalError(
            f"The folder {base} does not exist; expected the files of {spec.title}. "
            f"Check the path; {how_to_get(spec, base)}."
        )
    if find_split_file(spec, base) is not None:
        return read_split_file(spec, base)
    return READERS[spec.layout](spec, base)


__all__ = ["READERS", "read_dataset"]
