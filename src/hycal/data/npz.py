"""Arrays of labelled images in one .npz file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from hycal.data.samples import ImageSet, Sample, Split
from hycal.embedding.sources import ImageRow
from hycal.errors import HyCalError
from hycal.storage.npz import load_arrays

_PREFIXES: tuple[tuple[str, Split], ...] = (("train_", "train"), ("val_", "val"), ("test_", "test"), ("", ""))


def read_npz(path: str | os.PathLike[str]) -> ImageSet:
    """Return the images of an .npz: `images` and `labels`, or the same after train_, val_ and test_.

    Images are uint8 of shape (n, height, width) or (n, height, width, 3); labels are text, or positions in
    `class_names`, or without `class_names` any whole numbers.
    """
    source = Path(path)
    try:
        arrays = load_arrays(source)
    except ValueError as error:
        raise HyCalError(f"{source} is not a readable .npz of plain arrays: {error}.") from None
    parts = [(prefix, split) for prefix, split in _PREFIXES if f"{prefix}images" in arrays]
    if not parts or any(f"{prefix}labels" not in arrays for prefix, _ in parts):
        raise HyCalError(
            f"{source} has the arrays {sorted(arrays)}; expected images and labels, or train_images, "
            "train_labels, test_images and test_labels."
        )
    labels = {prefix: arrays[f"{prefix}labels"].reshape(-1) for prefix, _ in parts}
    names, positions = _classes(source, arrays.get("class_names"), labels)
    samples = []
    for prefix, split in parts:
        images = arrays[f"{prefix}images"]
        if len(images) != len(labels[prefix]):
            raise HyCalError(f"{source} has {len(images)} {prefix}images but {len(labels[prefix])} labels.")
        for index, label in enumerate(labels[prefix].tolist()):
            samples.append(Sample(ImageRow(images, index, f"{source.name}:{prefix}images"), positions[label], split))
    return ImageSet(source.stem, names, tuple(samples))


def _classes(
    source: Path, listed: np.ndarray | None, labels: dict[str, np.ndarray]
) -> tuple[tuple[str, ...], dict[str | int, int]]:
    """Return the class names, and the position in them of each label that occurs."""
    occurring = {label for part in labels.values() for label in part.tolist()}
    if len({isinstance(label, str) for label in occurring}) > 1:
        raise HyCalError(f"{source} labels one part by text and another by numbers; expected one kind in both.")
    values = sorted(occurring)
    if any(isinstance(value, float) for value in values):
        raise HyCalError(f"{source} has fractional labels, such as {values[0]}; expected text or whole numbers.")
    if listed is None:
        return tuple(str(value) for value in values), {value: at for at, value in enumerate(values)}
    names = tuple(str(name) for name in listed.tolist())
    known: dict[str | int, int] = {name: at for at, name in enumerate(names)}
    known |= {at: at for at in range(len(names))}
    strange = [value for value in values if value not in known]
    if strange:
        raise HyCalError(f"{source} has the label {strange[0]!r}, which is none of its {len(names)} class_names.")
    return names, {value: known[value] for value in values}
