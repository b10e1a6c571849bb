"""Labelled inputs of a project: the images of a folder, manifest or table that it learns, or that a test uses.

A project learns the images of the training split, and those without a split. A test uses every image that is not of the
training split: test, val, and those without a split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from hycal.data.readers import list_images
from hycal.data.samples import ListedImage, split_of
from hycal.embedding.sources import ImageSource
from hycal.embedding.store import Skipped
from hycal.embedding.table import EmbeddingTable, is_table, read_table
from hycal.errors import HyCalError
from hycal.project.examples import Space
from hycal.project.labels import class_called, class_label, own_labels, split_label
from hycal.project.state import State
from hycal.validation import Floats, Label, normal_name

TO_LEARN = ("train", "")
TO_TEST = ("test", "val", "")


@dataclass(frozen=True)
class LabelledImage:
    """An image with its label, from its folder or manifest."""

    source: ImageSource
    name: str
    label: str


@dataclass(frozen=True)
class LeftOut:
    """The images of an input that are not used."""

    source: Path  # the folder, manifest or table
    splits: Mapping[str, int]  # number of images of each split that is not used
    images: tuple[Skipped, ...]  # images of the other splits that cannot be used, with the reason

    @property
    def all(self) -> tuple[Skipped, ...]:
        """One item for each split and each image."""
        splits = [Skipped(str(self.source), f"{n:,} images of the split {split!r}") for split, n in self.splits.items()]
        return (*splits, *self.images)


@dataclass(frozen=True, eq=False)
class HeldOutImages:
    """Labelled images to test a model with, all of classes that it knows."""

    images: list[ImageSource] | Floats  # (n, d): the images; their embeddings if the input is a table
    labels: list[Label]  # the model's own label of each
    left_out: LeftOut


def to_learn(
    source: Path,
    *,
    domain: str | None = None,
    outside: bool = False,
    images: Path | None = None,
    state: State | None = None,
) -> tuple[list[LabelledImage], LeftOut]:
    """Return the images of a folder or of a file of labels that are learned, and what is left out.

    `domain` is that of all images; by default what the input says. With `outside`, a manifest may name images outside
    its folder. `images` is the folder of the images that a file of labels names; by default its own. `state` is the
    model that learns them: a file of labels may name its classes whole.
    """
    if source.is_file() and is_table(source):
        raise HyCalError(
            f"{source} is a table of embeddings, as `hycal embed` writes it, and a project learns images: it keeps the "
            "content hash and thumbnail of each. Learn the folder of the images instead; what was embedded is cached "
            "and is not embedded again. In Python, `partial_fit` learns the rows of a table."
        )
    listed = list_images(source, outside=outside, images=images)
    entries, names = _entries(listed, source, state), [image.source.name for image in listed]
    found, left_out = _labels(entries, names, TO_LEARN, source, domain)
    return [LabelledImage(listed[at].source, listed[at].file, label) for at, label in found.items()], left_out


def doubts(images: Sequence[LabelledImage]) -> list[str]:
    """Return what a person should look at before the images of a folder are learned."""
    own: dict[str, str] = {}
    below: dict[str, str] = {}
    domains = set()
    for image in images:
        name = split_label(image.label)[1]
        folders = [normal_name(part) for part in Path(image.name).parts[:-1] if not split_of(part)]
        if len(folders) == 1:
            own[folders[0]] = image.label
        elif folders and folders[1] == name:
            domains.add(folders[0])
        if folders and folders[-1] != name:
            below.setdefault(image.label, image.name)
    return [
        *(
            f"{label}: a class called like a split"
            for label in count_by_class(images)
            if split_of(split_label(label)[1])
        ),
        *(
            f"{own[name]}: its folder has class folders too, which become the domain {name}"
            for name in sorted(domains & set(own))
        ),
        *(f"{label}: some images are in folders below it, such as {file}" for label, file in below.items()),
    ]


def doubts_of_names(images: Sequence[LabelledImage], source: Path, state: State | None) -> list[str]:
    """Return which new classes of a file of labels that names no domain are called like a class of the model."""
    found = {} if state is None else {label: known_label(state, label) for label in count_by_class(images)}
    return [
        f"{label}: a new class, in a domain called like the file; if it is the class {known} of the model, name its "
        f"domain: --domain {split_label(known)[0]}"
        for label, known in found.items()
        if known is not None and normal_name(str(known)) != label and _named_by(source, split_label(label)[0])
    ]


def count_by_class(images: Iterable[LabelledImage]) -> dict[str, int]:
    """Return the number of images of each class."""
    return dict(sorted(Counter(image.label for image in images).items()))


def held_out_images(source: Path, state: State, *, domain: str | None = None, outside: bool = False) -> HeldOutImages:
    """Return the labelled images of a folder, manifest or table of embeddings to test a model with.

    A table must be of the space of the encoder of the model. The options are those of `to_learn`.
    """
    if is_table(source):
        table = _table(source, state.space)
        columns = (table.domains.tolist(), table.labels.tolist(), table.splits.tolist())
        known, left_out = _known(
            [_Entry(*row) for row in zip(*columns, strict=True)], table.files.tolist(), state, source, domain
        )
        return HeldOutImages(table.rows[list(known)], list(known.values()), left_out)
    images = list_images(source, outside=outside)
    entries, names = _entries(images, source, state), [image.source.name for image in images]
    known, left_out = _known(entries, names, state, source, domain)
    return HeldOutImages([images[at].source for at in known], list(known.values()), left_out)


def _table(source: Path, space: Space) -> EmbeddingTable:
    """Return a table of embeddings; one of a single view of a model that has several is widened to all of them."""
    table = read_table(source)
    for part in space.parts if space.views is not None else ():
        if part.name and part.fingerprint == table.fingerprint:
            return replace(table, rows=space.widened(table.rows, part.name))
    return read_table(source, fingerprint=space.fingerprint)


def known_label(state: State, label: str) -> Label | None:
    """Return the model's own label: the same, or that of the only class of that name in any domain, or None."""
    own = own_labels(state, [label])[label]
    return own if own in state.classes else class_called(state, split_label(own)[1])


class _Entry(NamedTuple):
    """What an input says about one image; "" where it says nothing."""

    domain: str
    label: str
    split: str
    problem: str = ""


def _entries(images: Iterable[ListedImage], source: Path, state: State | None) -> list[_Entry]:
    """Return what an input says. A label that names its class whole needs no domain from the name of the file."""
    whole = set() if state is None else {normal_name(str(label)) for label in state.labels}
    domains = set() if state is None else {normal_name(domain) for domain in state.domains}

    def is_whole(label: str) -> bool:
        return label in whole or (all(split_label(label)) and split_label(label)[0] in domains)

    return [
        _Entry(
            "" if _named_by(source, image.domain) and is_whole(image.label) else image.domain,
            image.label,
            image.split,
            image.problem,
        )
        for image in images
    ]


def _named_by(source: Path, domain: str) -> bool:
    """Whether a domain is that of a file of labels which names none."""
    return source.is_file() and domain == normal_name(source.stem)


def _known(
    entries: Sequence[_Entry], names: Sequence[str], state: State, source: Path, domain: str | None
) -> tuple[dict[int, Label], LeftOut]:
    """Return the model's label of each image of a test by number, and what is left out."""
    found, left_out = _labels(entries, names, TO_TEST, source, domain)
    own = {label: known_label(state, label) for label in set(found.values())}
    known = {at: own[label] for at, label in found.items()}
    strange = [Skipped(names[at], f"the model has no class {found[at]}") for at, name in known.items() if name is None]
    if len(strange) == len(found):
        first = f"; the first label is {next(iter(found.values()))!r}" if found else ""
        raise HyCalError(
            f"None of the {len(found)} images in {source} belongs to a class of the model{first}. Expected images that "
            f"were not learned, in folders named as the classes, such as {', '.join(map(str, state.labels[:3]))}."
        )
    usable = {at: name for at, name in known.items() if name is not None}
    return usable, replace(left_out, images=(*left_out.images, *strange))


def _labels(
    entries: Sequence[_Entry], names: Sequence[str], splits: Iterable[str], source: Path, domain: str | None
) -> tuple[dict[int, str], LeftOut]:
    """Return the label of each image of the wanted splits, by number, and what is left out."""
    wanted, found, skipped = set(splits), {}, []
    for number, entry in enumerate(entries):
        if entry.split not in wanted:
            continue
        if entry.label:
            found[number] = _label(entry, source, domain)
        else:
            skipped.append(Skipped(names[number], entry.problem or "lies in no class folder"))
    elsewhere = Counter(entry.split for entry in entries if entry.split not in wanted)
    return found, LeftOut(source, elsewhere, tuple(skipped))


def _label(entry: _Entry, source: Path, domain: str | None) -> str:
    name = entry.domain if domain is None else domain
    if not name and domain is None:  # a table may name no domains
        return entry.label
    if split_of(name) and name == source.resolve().name:  # photos/train: the domain is photos
        name = source.resolve().parent.name
    if not name or "/" in name:
        raise HyCalError(f"A domain cannot be called {name!r}: its name must not be empty, nor contain a slash.")
    own = entry.label.removeprefix(
        f"{name}/"
    )  # labels may name their class whole, as the guess of `hycal suggest` does
    return class_label(name, own or entry.label)
