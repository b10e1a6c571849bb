"""The immutable state of a project: the model, its images, and its history.

A history entry keeps the earlier version of each class that it changed. An undo puts those classes back, so it restores
the earlier state to the byte. States share every image that did not change.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from hycal.base import IncrementalClassifier
from hycal.project.examples import ClassExamples, Example, Space
from hycal.state.records import Records
from hycal.state.sealed import SealedRecords, refuse
from hycal.validation import Label

UNDO_DEPTH = 20
LENGTH = 1000


@dataclass(frozen=True, eq=False)
class Undo:
    """What a change replaced: the earlier classes by label, None for a new class, and the earlier memo.

    `method` is the earlier method and its parameters, having learned nothing, if the change replaced it. `space` is the
    earlier space, if the change replaced that: its classes have rows of another width.
    """

    classes: Mapping[Label, ClassExamples | None]
    memo: Mapping[str, Any] = field(default_factory=dict)
    method: IncrementalClassifier | None = None
    space: Space | None = None


@dataclass(frozen=True, eq=False)
class HistoryEntry:
    """One change in the history of a project.

    Attributes
    ----------
    when : str
        UTC, ISO 8601.
    action, what : str
        The operation, and one line about it for people, without names of images.
    before, after : str
        Hash of the model before and after.
    undo : Undo or None
        None if it was undone, is older than the last `UNDO_DEPTH` changes, or was removed by `forget_for_good`. Of an
        undo, what `redo` needs; the next change other than undo and redo removes it.
    number : int
        Which change of the project it was, from 1: the version after it.

    Examples
    --------
    >>> HistoryEntry("2026-01-01T00:00:00+00:00", "learn", "2 images", before="0a", after="1b" * 32, number=7).id
    '7-1b1b1b1b1b1b'
    """

    when: str
    action: str
    what: str
    before: str
    after: str
    undo: Undo | None = None
    number: int = 0

    @property
    def id(self) -> str:
        """What names this change and no other one: its number, and the start of the hash of the model after it."""
        return f"{self.number}-{self.after[:12]}"

    @property
    def title(self) -> str:
        """The change in words: "learning of 12 images of fruit/Lime"; of an undo or redo, those of what it is about."""
        return change_title(self.action, self.what)

    @property
    def undoable(self) -> bool:
        """Whether an undo can reverse it."""
        return self.undo is not None and self.action != "undo"

    @property
    def redoable(self) -> bool:
        """Whether it is an undo that a redo can reverse."""
        return self.undo is not None and self.action == "undo"


_NOUNS = {
    "learn": "learning of",
    "forget": "forgetting of",
    "correct": "correction that",
    "rename": "renaming of",
    "method": "change of method",
    "view": "change of views:",
}


def change_title(action: str, what: str) -> str:
    """Return a change in words, see `HistoryEntry.title`.

    >>> change_title("undo", "learn: 12 images of fruit/Lime")
    'learning of 12 images of fruit/Lime'
    """
    while action in ("undo", "redo"):
        action, _, what = what.partition(": ")
    return f"{_NOUNS.get(action, f'{action} of')} {without_remark(action, what)}"


def without_remark(action: str, what: str) -> str:
    """Return what a change was, without what followed from it: that answers may change once domains are joined."""
    return what.partition("; ")[0] if action == "rename" and what.endswith("so answers may change") else what


History = tuple[HistoryEntry, ...]


def now() -> str:
    """Return the present time as an entry has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def append_entry(history: History, entry: HistoryEntry) -> History:
    """Return the history with one more entry, without entries and undo data that are too old, or that it outdates."""
    redone = last_redoable(history) if entry.action == "redo" else None
    if redone is not None:
        history = drop_undo(history, redone)
    elif entry.action not in ("undo", "redo"):
        history = tuple(replace(old, undo=None) if old.redoable else old for old in history)
    grown = (*history, entry)[-LENGTH:]
    undoable = [number for number, old in enumerate(grown) if old.undo is not None]
    too_old = set(undoable[:-UNDO_DEPTH])
    return tuple(replace(old, undo=None) if number in too_old else old for number, old in enumerate(grown))


def last_undoable(history: History) -> HistoryEntry | None:
    """Return the entry that the next undo takes back."""
    return next((entry for entry in reversed(history) if entry.undoable), None)


def last_redoable(history: History) -> HistoryEntry | None:
    """Return the undo that the next redo takes back."""
    return next((entry for entry in reversed(history) if entry.redoable), None)


def undo_empties(state: State) -> bool:
    """Whether the next undo leaves no class in a model that has some."""
    last = last_undoable(state.history)
    return bool(state.classes and last and last.undo and not any({**state.classes, **last.undo.classes}.values()))


def drop_undo(history: History, entry: HistoryEntry) -> History:
    """Return the history without the undo data of `entry`."""
    return tuple(replace(old, undo=None) if old is entry else old for old in history)


def drop_all_undo(history: History) -> History:
    """Return the history without undo data: of earlier states it keeps the hashes only."""
    return tuple(replace(entry, undo=None) if entry.undo is not None else entry for entry in history)


Changes = Mapping[Label, ClassExamples | None]


@dataclass(frozen=True, eq=False)
class State:
    """A project at one version.

    Attributes
    ----------
    classifier : IncrementalClassifier
        It knows exactly the rows of `classes`. Do not let it learn: a state must not change.
    classes : mapping of label to ClassExamples
    space : Space
    history : tuple of HistoryEntry
        Oldest first.
    version : int
        Number of changes so far; an undo is a change.

    Examples
    --------
    >>> from hycal.project import empty_state
    >>> empty_state(Space("builtin", None, 512), has_text=False).labels
    ()
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
        """Label of each learned image by its identity."""
        return {example.identity: label for label, class_ in self.classes.items() for example in class_.examples}

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """Every learned image, class by class in the order of `labels`."""
        return tuple(example for label in self.labels for example in self.classes[label].examples)

    @property
    def n_images(self) -> int:
        """Number of learned images; copies of an image count each."""
        return sum(class_.count for class_ in self.classes.values())

    @property
    def sealed(self) -> bool:
        """Whether the model is sealed: then its classes have no images."""
        return self.classifier.sealed_

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the model. Equal models have equal hashes, whatever their history."""
        classifier = self.classifier
        head = [type(classifier).__name__, classifier.stored_parameters, self.memo, self.space.fingerprint]
        digest = hashlib.sha256(json.dumps(head, sort_keys=True, ensure_ascii=False).encode())
        for label in self.labels:
            digest.update(b"\n" + json.dumps(label, ensure_ascii=False).encode() + b"\n" + self.classes[label].digest)
        if isinstance(classifier.records_, SealedRecords):
            for part in classifier.records_.shared_bytes():
                digest.update(part)
        return digest.hexdigest()

    @property
    def kind(self) -> tuple[str, str | None, int, str]:
        """Method, fingerprint of the encoder, width, and parameters: all that answers depend on beside the images."""
        classifier, space = self.classifier, self.space
        parameters = json.dumps(classifier.stored_parameters, sort_keys=True)
        return type(classifier).__name__, space.fingerprint, space.dimension, parameters

    @property
    def memo(self) -> Mapping[str, Any]:
        """What the method stores beside the samples."""
        return self.classifier.records_.memo

    @property
    def method(self) -> IncrementalClassifier:
        """The method with its parameters, as a classifier that has learned nothing."""
        method = copy.copy(self.classifier)  # without what it derived
        method.install(Records({}))
        return method

    def with_classes(
        self,
        changes: Changes,
        *,
        memo: Mapping[str, Any] | None = None,
        method: IncrementalClassifier | None = None,
        space: Space | None = None,
    ) -> State:
        """Return the state with some classes replaced, or removed (None), by default of the same method and space.

        The history stays.
        """
        if self.sealed:
            refuse("change images one by one, undo a change, or be changed to another method")
        classes = {**self.classes, **changes}
        kept = {label: class_ for label, class_ in classes.items() if class_ is not None}
        records = Records({label: class_.record for label, class_ in kept.items()}, self.memo if memo is None else memo)
        space = space or self.space
        classifier = (method or self.classifier).with_records(records)
        classifier.encoder_ = space.fingerprint
        other = replace(self, classifier=classifier, classes=kept, space=space)
        if "label_of" in vars(self) and len(self.label_of) == self.n_images:
            vars(other)["label_of"] = _labels_after(
                self.label_of, [self.classes.get(label) for label in changes], changes
            )
        return other

    def with_entry(self, following: State, changes: Changes, *, action: str, what: str, when: str = "") -> State:
        """Return `following`, which `changes` made from this state, with a history entry about them."""
        method = None if following.kind == self.kind else self.method
        space = None if following.space == self.space else self.space
        undo = Undo({label: self.classes.get(label) for label in changes}, self.memo, method, space)
        return self.noted(following, action, what, undo=undo, when=when)

    def noted(self, following: State, action: str, what: str, *, undo: Undo | None = None, when: str = "") -> State:
        """Return `following` with the history of this state, and one more entry."""
        entry = HistoryEntry(when or now(), action, what, self.hash, following.hash, undo, self.version + 1)
        return following.with_history(append_entry(self.history, entry), version=self.version + 1)

    def with_history(self, history: History, *, version: int) -> State:
        """Return the same model with another history; cached properties are kept."""
        other = replace(self, history=history, version=version)
        known = {name: value for name, value in vars(self).items() if name not in _FIELDS}
        vars(other).update(known)
        return other


def lost_images(before: State, after: State) -> set[bytes]:
    """Return the identities of the images that `before` has, in its model or undo data, and `after` has not.

    Examples
    --------
    >>> from hycal.project import empty_state
    >>> state = empty_state(Space("builtin", None, 512), has_text=False)
    >>> lost_images(state, state)
    set()
    """
    return _held(before) - _held(after)


def _held(state: State) -> set[bytes]:
    undone = [entry.undo.classes.values() for entry in state.history if entry.undo is not None]
    classes = [*state.classes.values(), *(class_ for former in undone for class_ in former if class_ is not None)]
    return {example.identity for class_ in classes for example in class_.examples}


def _labels_after(
    label_of: Mapping[bytes, Label], before: Iterable[ClassExamples | None], after: Changes
) -> dict[bytes, Label]:
    """Return the label of each image after a change; only the images of changed classes are visited.

    No image may have a copy in another class, as it may in a model that was not learned here: the copy would get lost.
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
