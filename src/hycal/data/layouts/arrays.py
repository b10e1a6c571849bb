"""Data sets whose images are rows of arrays: MNIST (idx), MedMNIST (npz or exported files), Galaxy10 (HDF5)."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from hycal.data.catalog import DataSetSpec
from hycal.data.layouts.lookup import Reader, below, find, how_to_get, need
from hycal.data.samples import ImageSet, Sample, Split, split_of
from hycal.embedding.sources import ImageFile, ImageRow
from hycal.errors import HyCalError, load_extra
from hycal.storage.npz import load_arrays

_IDX_BYTES = 0x08
_GALAXY_SEED = 42


def read_mnist(spec: DataSetSpec, root: Path) -> ImageSet:
    """{train,t10k}-{images-idx3,labels-idx1}-ubyte, plain or .gz."""
    files: tuple[tuple[Split, str], ...] = (("train", "train"), ("test", "t10k"))
    samples: list[Sample] = []
    for split, prefix in files:
        images = read_idx(_plain_or_gz(spec, root, f"{prefix}-images-idx3-ubyte"))
        labels = read_idx(_plain_or_gz(spec, root, f"{prefix}-labels-idx1-ubyte"))
        samples += _rows(images, labels, split, f"{prefix}-images-idx3-ubyte")
    return ImageSet(spec.name, spec.class_names, tuple(samples))


def _plain_or_gz(spec: DataSetSpec, root: Path, name: str) -> Path:
    return find(root, name) or find(root, f"{name}.gz") or need(spec, root, name)


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """Return the array of an idx file: two zeros, type, rank, big-endian sizes, then the values."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise HyCalError(f"{path} cannot be read: {error}. Get the file again.") from None
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _IDX_BYTES:
        raise HyCalError(f"{path} is not an idx file of bytes: it begins with {content[:4]!r}. Get it again.")
    rank = content[3]
    shape = tuple(np.frombuffer(content[4 : 4 + 4 * rank], dtype=">u4").tolist())
    values = np.frombuffer(content, dtype=np.uint8, offset=min(4 + 4 * rank, len(content)))
    if len(shape) != rank or values.size != int(np.prod(shape)):
        raise HyCalError(f"{path} announces shape {shape} but holds {values.size} values. Get the file again.")
    return values.reshape(shape)


def read_medmnist(spec: DataSetSpec, root: Path) -> ImageSet:
    """organamnist_224.npz ({train,val,test}_{images,labels}), or the files that MedMNIST's `save` exports.

    Another edition, of smaller images, is read where this one is missing.
    """
    smaller = spec.edition.partition("_")[0]
    found = [*edition_files(root, spec.edition), *edition_files(root, f"{smaller}*")]
    if not found:
        raise HyCalError(
            f"{spec.title}: there is no {spec.edition}.npz, and no {spec.edition}.csv beside a folder of exported "
            f"images, below {root}; {how_to_get(spec, root)}."
        )
    return _MEDMNIST_FORMS[found[0].suffix](spec, found[0])


def edition_files(root: Path, edition: str) -> list[Path]:
    """Return the files of an edition of MedMNIST; first the arrays, then the lists of exported images."""
    folders = list(below(root))
    return [path for suffix in _MEDMNIST_FORMS for folder in folders for path in sorted(folder.glob(edition + suffix))]


def _medmnist_npz(spec: DataSetSpec, path: Path) -> ImageSet:
    samples: list[Sample] = []
    splits: tuple[Split, ...] = ("train", "val", "test")
    try:
        arrays = load_arrays(path)
        for split in splits:
            images, labels = arrays[f"{split}_images"], arrays[f"{split}_labels"]
            samples += _rows(images, labels, split, f"{path.name}:{split}_images")
    except HyCalError:
        raise
    except Exception as error:  # a damaged file may hold anything under these names
        raise HyCalError(f"{path} is not a MedMNIST file: {error!r}. Get it again.") from None
    return ImageSet(spec.name, spec.class_names, tuple(samples))


def _medmnist_export(spec: DataSetSpec, path: Path) -> ImageSet:
    """organamnist.csv with lines TRAIN,train0_6.png,6 beside organamnist/train0_6.png."""
    samples = []
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.reader(file), start=1):
            split = split_of(row[0]) if len(row) == 3 else None
            if not split or not row[2].isdecimal():
                raise HyCalError(f"{path}, line {number}: {row}; expected TRAIN,train0_6.png,6. Export it again.")
            samples.append(Sample(ImageFile(path.with_suffix("") / row[1]), int(row[2]), split))
    return ImageSet(spec.name, spec.class_names, tuple(samples))


_MEDMNIST_FORMS: Mapping[str, Reader] = {".npz": _medmnist_npz, ".csv": _medmnist_export}


@dataclass(frozen=True, eq=False)
class ResavedRow:
    """A row of an array as the JPEG file that Pillow makes of it: the authors encode galaxies from such files."""

    row: ImageRow

    @property
    def name(self) -> str:
        """The array and the row."""
        return self.row.name

    def read(self) -> bytes:
        """Return the JPEG file."""
        buffer = io.BytesIO()
        Image.fromarray(self.row.read()).save(buffer, "JPEG")
        return buffer.getvalue()


def read_galaxy10(spec: DataSetSpec, root: Path) -> ImageSet:
    """Galaxy10_DECals.h5 with `images` and `ans`; 80/10/10 stratified by class, seed 42; images saved as JPEG.

    The file stays open as long as the samples exist: its 3.5 GB of pixels are read row by row.
    """
    path = need(spec, root, "Galaxy10_DECals.h5")
    h5py = load_extra("h5py", extra="data", why="Reading Galaxy10")
    try:
        file = h5py.File(path, "r")
        images, labels = file["images"], np.asarray(file["ans"], dtype=np.int64)
    except (OSError, KeyError) as error:
        raise HyCalError(f"{path} is not the Galaxy10 DECaLS file: {error}. Get it again.") from None
    splits = galaxy_splits(labels)
    samples = tuple(
        Sample(ResavedRow(ImageRow(images, index, path.name)), int(label), split)
        for index, (label, split) in enumerate(zip(labels, splits, strict=True))
    )
    return ImageSet(spec.name, spec.class_names, samples)


def galaxy_splits(labels: npt.NDArray[np.int64]) -> list[Split]:
    """Return the split of each galaxy: 80/10/10, stratified by class, in two draws with seed 42."""
    from sklearn.model_selection import train_test_split

    everything = np.arange(len(labels))
    try:
        _, aside = train_test_split(everything, test_size=0.2, stratify=labels, random_state=_GALAXY_SEED)
        val, test = train_test_split(aside, test_size=0.5, stratify=labels[aside], random_state=_GALAXY_SEED)
    except ValueError as error:
        raise HyCalError(f"Galaxy10 cannot be split by class: {error} Get the file again.") from None
    splits: list[Split] = ["train"] * len(labels)
    for index in val.tolist():
        splits[index] = "val"
    for index in test.tolist():
        splits[index] = "test"
    return splits


def _rows(images: Any, labels: npt.NDArray[Any], split: Split, name: str) -> list[Sample]:
    if len(images) != labels.size:
        raise HyCalError(f"{name} has {len(images)} images but {labels.size} labels. Get the files again.")
    flat = labels.reshape(-1).tolist()
    return [Sample(ImageRow(images, index, name), int(label), split) for index, label in enumerate(flat)]


LAYOUTS: Mapping[str, Reader] = {"galaxy10": read_galaxy10, "medmnist": read_medmnist, "mnist": read_mnist}
