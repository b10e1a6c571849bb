"""One whole state of a project, never changed in place: the model, the images behind it, and its history.

An entry of the history keeps, for the classes it changed, what they were before. An undo puts those classes back, so an
earlier state returns to the byte. States share every image that did not change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from hycal.base import IncrementalClassifier
from hycal.project.examples import ClassExamples, Example
from hycal.state.records import Records
from hycal.validation import Label

UNDO_DEPTH = 20
LENGTH = 1000


@dataclass(frozen=True, eq=False)
class Undo:
    """What an entry's changes replaced: classes by label (None: there was no such class), and the memo."""

    classes: Mapping[Label, ClassExamples | None]
    memo: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Entry:
    """One accepted change.

    Attributes
    ----------
    when : str
        UTC, ISO 8601.
    action, what : str
        The operation, and one line about it for people. Never the name of an image.
    before, after : str
        Hash of the model before and after.
    undo : Undo or None
        None once it was taken back, lies deeper than `UNDO_DEPTH`, or was purged.
    """

    when: str
    action: str
    what: str
    before: str
    after: str
    undo: Undo | None = None

    @property
    def undoable(self) -> bool:
        """Whether an undo can take it back."""
        return self.undo is not None


History = tuple[Entry, ...]


def now() -> str:
    """Return the time of an entry that is made now."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def appended(history: History, entry: Entry) -> History:
    """Return the history with one more entry; the oldest undo, and the oldest entry, fall off the end."""
    grown = (*history, entry)[-LENGTH:]
    undoable = [number for number, old in enumerate(grown) if old.undo is not None]
    too_old = set(undoable[:-UNDO_DEPTH])
    return tuple(replace(old, undo=None) if number in too_old else old for number, old in enumerate(grown))


def undoable(history: History) -> Entry | None:
    """Return the entry that the next undo takes back."""
    return next((entry for entry in reversed(history) if entry.undo is not None), None)


def taken_back(history: History, entry: Entry) -> History:
    """Return the history in which `entry` can be taken back no more."""
    return tuple(replace(old, undo=None) if old is entry else old for old in history)


def purged(history: History) -> History:
    """Return the history without anything of earlier states but their hashes."""
    return tuple(replace(entry, undo=None) if entry.undo is not None else entry for entry in history)


Changes = Mapping[Label, ClassExamples | None]


@dataclass(frozen=True)
class Space:
    """The space that the embeddings live in: the encoder's name, its exact fingerprint, and the width."""

    name: str
    fingerprint: str | None
    dimension: int


@dataclass(frozen=True, eq=False)
class State:
    """A project at one moment.

    Attributes
    ----------
    classifier : IncrementalClassifier
        Knows exactly the rows of `classes`. Never let it learn.
    classes : mapping of label to ClassExamples
    space : Space
    history : tuple of Entry
        Oldest first.
    version : int
        How many changes were ever made; an undo is one.
    """

    classifier: IncrementalClassifier
    classes: Mapping[Label, ClassExamples]
    space: Space
    history: History = ()
    version: int = 0

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """Labels, sorted: the order of the classifier's columns."""
        return tuple(sorted(self.classes))

    @cached_property
    def domains(self) -> dict[str, list[Label]]:
        """Labels by domain."""
        found: dict[str, list[Label]] = {}
        for label in self.labels:
            found.setdefault(self.classes[label].domain, []).append(label)
        return dict(sorted(found.items()))

    @cached_property
    def label_of(self) -> Mapping[bytes, Label]:
        """Label by the identity of each learned image."""
        return {example.identity: label for label, class_ in self.classes.items() for example in class_.examples}

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """Every learned image, class after class in the order of `labels`."""
        return tuple(example for label in self.labels for example in self.classes[label].examples)

    @property
    def n_images(self) -> int:
        """Learned images, an image that is there twice counted twice."""
        return sum(len(class_.examples) for class_ in self.classes.values())

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the model: equal models have equal hashes, however they came about."""
        classifier = self.classifier
        head = [type(classifier).__name__, classifier.get_params(deep=False), self.memo, self.space.fingerprint]
        digest = hashlib.sha256(json.dumps(head, sort_keys=True, ensure_ascii=False).encode())
        for label in self.labels:
            digest.update(b"\n" + json.dumps(label, ensure_ascii=False).encode() + b"\n" + self.classes[label].digest)
        return digest.hexdigest()

    @property
    def memo(self) -> Mapping[str, Any]:
        """What the method remembers beside the samples."""
        return self.classifier.records_.memo

    def changed(self, changes: Changes, *, memo: Mapping[str, Any] | None = None) -> State:
        """Return the state with other classes at some labels, None for no class; the history stays."""
        classes = {**self.classes, **changes}
        kept = {label: class_ for label, class_ in classes.items() if class_ is not None}
        records = Records({label: class_.record for label, class_ in kept.items()}, self.memo if memo is None else memo)
        other = replace(self, classifier=self.classifier.knowing(records), classes=kept)
        if "label_of" in vars(self) and len(self.label_of) == self.n_images:
            vars(other)["label_of"] = _labels_after(
                self.label_of, [self.classes.get(label) for label in changes], changes
            )
        return other

    def recorded(self, following: State, changes: Changes, *, action: str, what: str, when: str = "") -> State:
        """Return `following`, made of this state by `changes`, with an entry about it in its history."""
        undo = Undo({label: self.classes.get(label) for label in changes}, self.memo)
        entry = Entry(when or now(), action, what, self.hash, following.hash, undo)
        return following.noted(appended(self.history, entry), version=self.version + 1)

    def noted(self, history: History, *, version: int) -> State:
        """Return the same model under another history; what was worked out of it is kept."""
        other = replace(self, history=history, version=version)
        known = {name: value for name, value in vars(self).items() if name not in _FIELDS}
        vars(other).update(known)
        return other


def gone(before: State, after: State) -> set[bytes]:
    """Return the identities of the images that one state holds, in its model or its undo, and a later one does not."""
    return _held(before) - _held(after)


def _held(state: State) -> set[bytes]:
    undone = [entry.undo.classes.values() for entry in state.history if entry.undo is not None]
    classes = [*state.classes.values(), *(class_ for former in undone for class_ in former if class_ is not None)]
    return {example.identity for class_ in classes for example in class_.examples}


def _labels_after(
    label_of: Mapping[bytes, Label], before: Iterable[ClassExamples | None], after: Changes
) -> dict[bytes, Label]:
    """Return the labels of all images after a change, without going through those that it did not touch.

    No image may be there twice, as it may in a model that was not learned here: the other copy would be lost.
    """
    moved = dict(label_of)
    for class_ in before:
        for example in class_.examples if class_ is not None else ():
            moved.pop(example.identity, None)
    for label, class_ in after.items():
        for example in class_.examples if class_ is not None else ():
            moved[example.identity] = label
    return moved


_FIELDS = {field.name for field in fields(State)}
