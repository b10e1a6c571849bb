"""Sort a pile: which image goes into which folder, and the plan of all moves.

An image goes to the folder of its best class, to `unknown` if it fits no learned class, or to `unsure`. The surest
images are taken as long as the mean chance of an error stays within the error rate that was asked for; the others are
unsure. The chance that an answer is right is the calibrated probability of the class, times the probability that the
image is of a learned class at all (`hycal.pile.strangers`). An image that the model has learned goes where it was
taught to go.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt

from hycal.base import IncrementalClassifier
from hycal.errors import HyCalError
from hycal.escaping import file_name
from hycal.pile.lists import MARKS, SIDECAR
from hycal.pile.manifest import (
    COCO,
    CSV,
    LISTS,
    NAME,
    SORTED,
    UNKNOWN,
    UNSURE,
    Layout,
    Manifest,
    PlannedMove,
    Way,
    read_manifest,
)
from hycal.pile.moves import Problem, Watch, carry_out, locked_folder
from hycal.pile.strangers import chance_learned
from hycal.storage.atomic import check_replaceable
from hycal.uncertainty.unknown import check_share, rejected
from hycal.validation import Doubles, Label

_AT_ONCE = 4096  # rows
_RESERVED = {UNSURE, UNKNOWN, NAME, *LISTS}  # in the sorted folder, in lower case
_LONGEST = 255  # bytes of a name on most file systems


@dataclass(frozen=True)
class Decision:
    """Where an image belongs: "sorted", "unsure" or "unknown"; its best class, and the chance that this is right."""

    place: str
    label: Label
    probability: float


def decide(
    classifier: IncrementalClassifier,
    X: npt.ArrayLike,
    *,
    error: float = 0.05,
    unknown: float | None = 0.05,
    known: Mapping[int, Label] | None = None,
) -> list[Decision]:
    """Return the decision for each row of `X`.

    `error` is the expected share of wrong images in the class folders. `unknown` is the share of images of learned
    classes that may be called unknown; None: nothing is, and all images are taken to be of learned classes. `known` has
    the labels that a person gave, by row.
    """
    check_share("error", error)
    if not len(np.atleast_1d(np.asarray(X))):
        return []
    taught, rows = known or {}, classifier.check_queries(X)
    best, chances = np.empty(len(rows), np.intp), np.empty(len(rows))
    for start in range(0, len(rows), _AT_ONCE):
        part = classifier.predict_proba(rows[start : start + _AT_ONCE])
        best[start : start + _AT_ONCE], chances[start : start + _AT_ONCE] = part.argmax(axis=1), part.max(axis=1)
    strange = np.zeros(len(rows), bool)
    new = np.array([row not in taught for row in range(len(rows))], bool)
    if unknown is not None:
        check_share("unknown", unknown)
        familiarity = classifier.familiarity_
        if len(familiarity.held_out):
            found = familiarity(rows)
            strange = rejected(found, familiarity.threshold(unknown))
            chances[new] *= chance_learned(found[new], familiarity.held_out)
    asked = new & ~strange
    sure = np.zeros(len(rows), bool)
    sure[asked] = sure_enough(chances[asked], error)
    labels = classifier.classes_[best].tolist()
    places = np.where(strange, UNKNOWN, np.where(sure, SORTED, UNSURE)).tolist()
    return [
        Decision(SORTED, taught[row], 1.0) if row in taught else Decision(places[row], labels[row], float(chances[row]))
        for row in range(len(rows))
    ]


def sure_enough(chances: Doubles, error: float) -> npt.NDArray[np.bool_]:
    """Return which answers to accept, given their probabilities: the surest, with a mean chance of error <= `error`.

    >>> sure_enough(np.array([0.5, 0.99, 0.9, 0.95]), 0.06)
    array([False,  True,  True,  True])
    """
    order = np.argsort(-chances, kind="stable")
    errors = np.cumsum(1.0 - chances[order]) / np.arange(1, len(chances) + 1)
    accepted = np.zeros(len(chances), bool)
    accepted[order[: int(np.searchsorted(errors, error, side="right"))]] = True
    return accepted


def new_manifest(folder: Path, out: Path, *, way: Way, layout: Layout, csv: bool) -> Manifest:
    """Return the empty manifest of a folder that will be sorted, or say why it cannot be.

    Nothing is written. `csv` asks for a table of all images.
    """
    root, target = Path(os.path.realpath(folder)), Path(os.path.realpath(out))
    if target.is_relative_to(root) or root.is_relative_to(target):
        raise HyCalError(
            f"{out} and {folder} lie in each other, so sorted images would be sorted again. Choose an --out beside it."
        )
    written = (*([CSV] if csv else []), *([COCO] if layout == "coco" else []))
    for name in written:
        check_replaceable(out / name, MARKS[name])
    return Manifest(root, way, layout, written=written)


@dataclass(frozen=True)
class ImageToSort:
    """An image to sort: its path below the folder that is sorted, its content hash, and where it belongs."""

    source: str
    key: bytes
    decision: Decision


def sort_images(
    out: Path, fresh: Manifest, images: Sequence[ImageToSort], *, sidecars: bool, watch: Watch | None = None
) -> tuple[Manifest, list[Problem]]:
    """Sort images into `out`: finish what a killed run left, then place those that are not in its manifest yet.

    `out` is made if there is none. `fresh` is the manifest of `new_manifest`, used where `out` has none. With
    `sidecars`, each sorted image gets a file of keywords. `watch` is called with the number of images done, and of all.
    """
    made = [] if out.is_dir() else ["."]
    _folders(fresh.layout, [image.decision.label for image in images])  # refuses before anything is made
    out.mkdir(exist_ok=True)
    with locked_folder(out):
        old = read_manifest(out) or replace(fresh, made=tuple(made))
        return carry_out(out, extended(old, out, images, sidecars=sidecars), watch=watch)


def extended(manifest: Manifest, out: Path, images: Sequence[ImageToSort], *, sidecars: bool) -> Manifest:
    """Return the manifest with the images that it does not have yet, and the folders to make for them.

    Names are kept; where one is taken, by an image of the plan or by any file, a number follows it.
    """
    have = {(entry.source, entry.sha256) for entry in manifest.entries}
    new = [image for image in images if (image.source, image.key.hex()) not in have]
    entries = _plan(manifest, out, new, sidecars)
    made = (*manifest.made, *_missing(out, manifest, entries))
    return replace(manifest, entries=(*manifest.entries, *entries), made=made)


def _plan(manifest: Manifest, out: Path, images: Sequence[ImageToSort], sidecars: bool) -> list[PlannedMove]:
    folders = _folders(manifest.layout, [image.decision.label for image in images])
    planned = {path for entry in manifest.entries for path in (entry.target, entry.sidecar)}
    names = _Names(out, planned | set(map(str, folders.values())))
    placed = {entry.label: PurePosixPath(entry.target).parent for entry in manifest.entries if entry.place == SORTED}
    entries = []
    for image in images:
        found = image.decision
        of_class = placed.get(str(found.label), folders[found.label])
        folder = of_class if found.place == SORTED else PurePosixPath(found.place)
        tag = SIDECAR if sidecars and found.place == SORTED else ""
        target = names.free(folder / PurePosixPath(image.source).name, tag)
        hash_, sidecar = image.key.hex(), target + tag if tag else ""
        entries.append(
            PlannedMove(image.source, target, hash_, found.place, str(found.label), found.probability, sidecar)
        )
    return entries


def _folders(layout: Layout, labels: Sequence[Label]) -> dict[Label, PurePosixPath]:
    """Return the folder of each class, or say why it cannot have one."""
    parts = {label: [file_name(part) for part in str(label).split("/", 1)] for label in dict.fromkeys(labels)}
    if layout == "coco":
        return dict.fromkeys(parts, PurePosixPath("images"))
    one_domain = len({names[0] for names in parts.values() if len(names) > 1}) <= 1
    if layout == "imagefolder":
        parts = {label: ["classes", names[-1] if one_domain else "-".join(names)] for label, names in parts.items()}
    for label, names in parts.items():
        _check_folder(label, names)
    return {label: PurePosixPath(*names) for label, names in parts.items()}


def _check_folder(label: Label, names: Sequence[str]) -> None:
    """Refuse a class whose folder would have no name, one that the system cannot have, or one of `hycal sort`."""
    if names[0].casefold() in _RESERVED:
        fault = f"would go to {names[0]!r}, which `hycal sort` uses for something else"
    elif not all(names):
        fault = "would go to a folder without a name"
    elif max(len(os.fsencode(name)) for name in names) > _LONGEST:
        fault = f"would go to a folder whose name has more than {_LONGEST} bytes"
    else:
        return
    raise HyCalError(
        f"The images of {str(label)!r} {fault}. Rename it with `hycal rename`, or choose another --layout. "
        "Nothing was changed."
    )


class _Names:
    """Free names in a sorted folder; capitals make no difference, as on many disks."""

    def __init__(self, out: Path, taken: set[str]) -> None:
        self._out, self._taken = out, {path.casefold() for path in taken}
        self._last: dict[str, int] = {}

    def free(self, path: PurePosixPath, sidecar: str) -> str:
        """Return the path, with the first free number if it is taken; the name of its sidecar file is free too."""
        wanted = str(path)
        number = self._last.get(wanted.casefold(), 1)
        while True:
            name = wanted if number == 1 else str(path.with_name(f"{path.stem}-{number}{path.suffix}"))
            own = {name, name + sidecar}
            if not any(each.casefold() in self._taken or os.path.lexists(self._out / each) for each in own):
                self._last[wanted.casefold()] = number
                self._taken |= {each.casefold() for each in own}
                return name
            number += 1


def _missing(out: Path, manifest: Manifest, entries: Sequence[PlannedMove]) -> list[str]:
    """Return the folders that are not there yet, parents first."""
    above = {str(parent) for entry in entries for parent in PurePosixPath(entry.target).parents}
    new = (name for name in above if name not in manifest.made and not (out / name).is_dir())
    return sorted(new, key=lambda name: (len(PurePosixPath(name).parts), name))
