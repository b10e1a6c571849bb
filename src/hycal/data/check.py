"""The check of a copy of a data set: what is there, what is missing, what is wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hycal.data.catalog import DataSetSpec, find_dataset
from hycal.data.layouts import read_dataset, unlike_paper
from hycal.data.layouts.files import find_split_file
from hycal.data.samples import ImageSet
from hycal.embedding.decoding import decode, pillow_quiet
from hycal.embedding.sources import ImageError, ImageFile
from hycal.errors import HyCalError

_EXAMPLES = 5


@dataclass(frozen=True)
class DataReport:
    """The result of a check, as lines of text.

    Examples
    --------
    >>> DataReport("Birds", there=("2 classes",), missing=("birds/images",), wrong=()).complete
    False
    """

    title: str
    there: tuple[str, ...]
    missing: tuple[str, ...]
    wrong: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing is missing and nothing is wrong."""
        return not self.missing and not self.wrong


def check_dataset(name: str, root: str | os.PathLike[str]) -> DataReport:
    """Check the data set `name` below `root`: its lists, its counts, its files, and the first image of each class.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as empty:
    ...     report = check_dataset("eurosat", empty)
    >>> report.complete
    False
    """
    spec = find_dataset(name)
    base = Path(root)
    try:
        images = read_dataset(name, base)
    except HyCalError as error:
        return DataReport(spec.title, (), (str(error),), ())
    split = find_split_file(spec, base)
    there = [_summary(images)]
    if split is not None:
        there.append(f"split: CoOp's, {split}")
    lacking = unlike_paper(spec, base)
    expected = spec.images if split is not None or not spec.official_images else spec.official_images
    absent, broken = _files(images)
    return DataReport(
        spec.title,
        tuple(there),
        (*([lacking] if lacking else []), *absent),
        (*_counts(spec, images, expected), *broken, *_first_images(images)),
    )


def _summary(images: ImageSet) -> str:
    counts = ", ".join(f"{count:,} {split or 'without split'}" for split, count in images.counts().items())
    return f"{len(images.class_names)} classes, {len(images.samples):,} images ({counts})"


def _counts(spec: DataSetSpec, images: ImageSet, expected: Mapping[str, int]) -> list[str]:
    found: dict[str, int] = {split or "all": count for split, count in images.counts().items()}
    wrong = [
        f"{found.get(split, 0):,} images in {split}; the published set has {expected.get(split, 0):,}"
        for split in sorted({*found, *expected})
        if found.get(split, 0) != expected.get(split, 0)
    ]
    if len(images.class_names) != spec.classes:
        wrong.insert(0, f"{len(images.class_names)} classes; the published set has {spec.classes}")
    return wrong


def _files(images: ImageSet) -> tuple[list[str], list[str]]:
    absent, empty = [], []
    for sample in images.samples:
        if isinstance(sample.source, ImageFile):
            path = sample.source.path
            if not path.is_file():
                absent.append(str(path))
            elif not path.stat().st_size:
                empty.append(str(path))
    return _listed("image files that the lists name", absent), _listed("empty image files", empty)


def _first_images(images: ImageSet) -> list[str]:
    """Decode the first existing image of each class; return a line about the images that fail."""
    seen: set[int] = set()
    broken = []
    for sample in images.samples:
        source = sample.source
        if sample.label in seen or (isinstance(source, ImageFile) and not source.path.is_file()):
            continue
        seen.add(sample.label)
        try:
            with pillow_quiet():
                decode(source.read())
        except ImageError as error:
            broken.append(f"{source.name} ({error})")
    return _listed("images, of the first of each class, that cannot be decoded", broken)


def _listed(what: str, names: list[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - _EXAMPLES:,} more" if len(names) > _EXAMPLES else ""
    return [f"{len(names):,} {what}: {', '.join(names[:_EXAMPLES])}{more}"]
