"""The labelled images of one domain, not read yet. Every reader returns them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hycal.embedding.sources import ImageSource
from hycal.errors import HyCalError

Split: TypeAlias = Literal["train", "val", "test", ""]
SPLITS: tuple[Split, ...] = ("train", "val", "test", "")
NamedSample: TypeAlias = tuple[ImageSource, str, Split]  # with the name of its class

_ALIASES: dict[str, Split] = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "test": "test",
    "testing": "test",
    "": "",
}


def split_of(name: str) -> Split | None:
    """Return the split with this name, in any case, or None.

    >>> split_of("Validation"), split_of("dogs")
    ('val', None)
    """
    return _ALIASES.get(name.lower())


@dataclass(frozen=True)
class ListedImage:
    """One image with its file name, class, domain and split, "" for what is not known, and why it has no class."""

    source: ImageSource
    file: str
    label: str
    domain: str
    split: Split
    problem: str = ""


@dataclass(frozen=True)
class Sample:
    """One image, the position of its class in `ImageSet.class_names`, and its split ("" for none).

    Examples
    --------
    >>> from pathlib import Path
    >>> from hycal.embedding import ImageFile
    >>> Sample(ImageFile(Path("rose/1.jpg")), label=0, split="train").split
    'train'
    """

    source: ImageSource
    label: int
    split: Split = ""


@dataclass(frozen=True)
class ImageSet:
    """The images of one domain.

    Attributes
    ----------
    name : str
        The domain.
    class_names : tuple of str
    samples : tuple of Sample
        In the order of the published lists; few-shot draws follow it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hycal.embedding import ImageFile
    >>> images = ImageSet("flower", ("rose",), (Sample(ImageFile(Path("rose/1.jpg")), 0),))
    >>> images.class_names[images.samples[0].label]
    'rose'
    """

    name: str
    class_names: tuple[str, ...]
    samples: tuple[Sample, ...]

    def __post_init__(self) -> None:
        if not self.samples:
            raise HyCalError(f"The data set {self.name!r} has no images. Check its folder.")
        worst = max(sample.label for sample in self.samples)
        if worst >= len(self.class_names) or min(sample.label for sample in self.samples) < 0:
            raise HyCalError(f"The data set {self.name!r} has label {worst} but only {len(self.class_names)} classes.")

    def of(self, *splits: Split) -> list[Sample]:
        """Return the samples of the given splits, in order."""
        return [sample for sample in self.samples if sample.split in splits]

    def counts(self) -> dict[Split, int]:
        """Return the number of images of each split that has any."""
        found = Counter(sample.split for sample in self.samples)
        return {split: found[split] for split in SPLITS if found[split]}


def from_names(name: str, entries: Iterable[NamedSample]) -> ImageSet:
    """Return the image set of (source, class name, split) entries, with its classes in sorted order."""
    listed = list(entries)
    classes = tuple(sorted({label for _, label, _ in listed}))
    number = {label: position for position, label in enumerate(classes)}
    return ImageSet(name, classes, tuple(Sample(source, number[label], split) for source, label, split in listed))
