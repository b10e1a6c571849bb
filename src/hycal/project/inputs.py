"""Which images of a folder or manifest a project can use, and under which labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hycal.data.labelled import ListedImage
from hycal.data.samples import split_of
from hycal.embedding.outcomes import Skipped
from hycal.embedding.sources import ImageSource
from hycal.errors import HyCalError
from hycal.project.examples import class_label
from hycal.project.lookup import class_called
from hycal.project.state import State
from hycal.validation import Label

TO_LEARN = ("train", "")
TO_TEST = ("test", "val", "")


@dataclass(frozen=True)
class Labelled:
    """An image with the label that its place gives it."""

    source: ImageSource
    name: str
    label: str


def labelled(
    images: Sequence[ListedImage], *, root: Path, domain: str | None, splits: Iterable[str]
) -> tuple[list[Labelled], list[Skipped]]:
    """Return the images of the wanted splits that lie in a class folder, and why the others are left out.

    Parameters
    ----------
    images : sequence of ListedImage
    root : Path
        The folder or manifest that they come from.
    domain : str or None
        The domain of all of them; by default what the folders say.
    splits : iterable of str
        A folder without splits has the split "".
    """
    wanted, found, left_out = set(splits), [], []
    elsewhere = Counter(image.split for image in images if image.split not in wanted)
    left_out += [Skipped(str(root), f"{n:,} images of the split {split!r}") for split, n in elsewhere.items()]
    for image in images:
        if image.split not in wanted:
            continue
        if not image.label:
            left_out.append(Skipped(image.source.name, "lies in no class folder"))
        else:
            label = class_label(_domain(image.domain if domain is None else domain, root), image.label)
            found.append(Labelled(image.source, image.file, label))
    return found, left_out


def known_label(state: State, label: str) -> Label | None:
    """Return the model's label for an image: the same, or else the only class of that name in any domain."""
    return label if label in state.shelves else class_called(state, label.split("/", 1)[1])


def _domain(name: str, root: Path) -> str:
    if split_of(name) and name == root.resolve().name:  # photos/train: the domain is photos
        name = root.resolve().parent.name
    if not name or "/" in name:
        raise HyCalError(f"A domain cannot be called {name!r}: its name must not be empty, nor contain a slash.")
    return name
