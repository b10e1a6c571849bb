"""The difference between two models: settings, classes and images.

A sealed model does not know its images. Of a class whose moments differ, or that one model alone has sealed, only the
numbers of images are compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from hycal.project.state import State
from hycal.state.records import Records
from hycal.state.sealed import SealedRecords
from hycal.validation import Label


@dataclass(frozen=True)
class ClassChange:
    """Numbers of images of one class: in the first model only, in the second only, in both."""

    only_first: int
    only_second: int
    both: int


@dataclass(frozen=True)
class Difference:
    """Two models compared."""

    # Method, parameters and encoder that differ: their values in the first and in the second.
    settings: Mapping[str, tuple[str, str]]
    # Classes that only one has, and their images.
    only_first: Mapping[Label, int]
    only_second: Mapping[Label, int]
    changed: Mapping[Label, ClassChange]  # classes of both models with different images
    # Numbers of images in the first and in the second, of differing classes whose images a sealed model does not know.
    counted: Mapping[Label, tuple[int, int]]
    same: int  # number of classes of both models with the same images, or with equal moments where both are sealed

    @property
    def equal(self) -> bool:
        """Whether the models are equal."""
        return not (self.settings or self.only_first or self.only_second or self.changed or self.counted)


def compare(first: State, second: State) -> Difference:
    """Return the difference between two models. Histories, names of images and thumbnails are not compared."""
    mine, theirs = _settings(first), _settings(second)
    common = [label for label in first.labels if label in second.classes]
    differing = [label for label in common if first.classes[label].digest != second.classes[label].digest]
    sealed = first.sealed or second.sealed
    return Difference(
        settings={
            name: (mine.get(name, ""), theirs.get(name, ""))
            for name in {**mine, **theirs}
            if mine.get(name) != theirs.get(name)
        },
        only_first=_missing(first, second),
        only_second=_missing(second, first),
        changed={} if sealed else {label: _change(first, second, label) for label in differing},
        counted={label: (first.classes[label].count, second.classes[label].count) for label in differing if sealed},
        same=len(common) - len(differing),
    )


def _settings(state: State) -> dict[str, str]:
    classifier = state.classifier
    parameters = {name: str(value) for name, value in classifier.get_params(deep=False).items()}
    head = {"method": type(classifier).__name__, "encoder": f"{state.space.name} {state.space.fingerprint}"}
    memo = {f"memo {name}": str(value) for name, value in state.memo.items()}
    return {**head, "sealed": _sealed(classifier.records_), **parameters, **memo}


def _sealed(records: Records) -> str:
    """Return whether a model is sealed, with a short hash of what it keeps beside its classes."""
    if not isinstance(records, SealedRecords):
        return "no"
    digest = hashlib.sha256(b"".join(records.shared_bytes())).hexdigest()
    return f"yes (calibration and shared covariances {digest[:12]})"


def _missing(state: State, other: State) -> dict[Label, int]:
    return {label: state.classes[label].count for label in state.labels if label not in other.classes}


def _change(first: State, second: State, label: Label) -> ClassChange:
    mine, theirs = ({e.identity for e in state.classes[label].examples} for state in (first, second))
    return ClassChange(len(mine - theirs), len(theirs - mine), len(mine & theirs))
