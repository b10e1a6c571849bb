"""One whole state of a project, never changed in place: the model, the images behind it, and its history."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from hycal.base import IncrementalClassifier
from hycal.project.examples import Example, Shelf
from hycal.project.history import Entry, History, Undo, appended, now
from hycal.state.records import Records
from hycal.validation import Label

Changes = Mapping[Label, Shelf | None]


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
        Knows exactly the rows on the shelves. Ask it anything, but never let it learn.
    shelves : mapping of label to Shelf
    space : Space
    history : tuple of Entry
        Oldest first.
    version : int
        How many changes were ever made; an undo is one.
    """

    classifier: IncrementalClassifier
    shelves: Mapping[Label, Shelf]
    space: Space
    history: History = ()
    version: int = 0

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """Labels, sorted: the order of the classifier's columns."""
        return tuple(sorted(self.shelves))

    @cached_property
    def domains(self) -> dict[str, list[Label]]:
        """Labels by domain."""
        found: dict[str, list[Label]] = {}
        for label in self.labels:
            found.setdefault(self.shelves[label].domain, []).append(label)
        return dict(sorted(found.items()))

    @cached_property
    def label_of(self) -> Mapping[bytes, Label]:
        """Label by the identity of each learned image."""
        return {example.identity: label for label, shelf in self.shelves.items() for example in shelf.examples}

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """Every learned image, class after class in the order of `labels`."""
        return tuple(example for label in self.labels for example in self.shelves[label].examples)

    @property
    def n_images(self) -> int:
        """Learned images, an image that is there twice counted twice."""
        return sum(len(shelf.examples) for shelf in self.shelves.values())

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the model: equal models have equal hashes, however they came about."""
        classifier = self.classifier
        head = [type(classifier).__name__, classifier.get_params(deep=False), self.memo, self.space.fingerprint]
        digest = hashlib.sha256(json.dumps(head, sort_keys=True, ensure_ascii=False).encode())
        for label in self.labels:
            digest.update(b"\n" + json.dumps(label, ensure_ascii=False).encode() + b"\n" + self.shelves[label].digest)
        return digest.hexdigest()

    @property
    def memo(self) -> Mapping[str, Any]:
        """What the method remembers beside the samples."""
        return self.classifier.records_.memo

    def changed(self, changes: Changes, *, memo: Mapping[str, Any] | None = None) -> State:
        """Return the state with other shelves at some labels, None for no class; the history stays."""
        shelves = {**self.shelves, **changes}
        kept = {label: shelf for label, shelf in shelves.items() if shelf is not None}
        records = Records({label: shelf.record for label, shelf in kept.items()}, self.memo if memo is None else memo)
        other = replace(self, classifier=self.classifier.knowing(records), shelves=kept)
        if "label_of" in vars(self) and len(self.label_of) == self.n_images:
            vars(other)["label_of"] = _moved(self.label_of, [self.shelves.get(label) for label in changes], changes)
        return other

    def recorded(self, following: State, changes: Changes, *, action: str, what: str, when: str = "") -> State:
        """Return `following`, made of this state by `changes`, with an entry about it in its history."""
        undo = Undo({label: self.shelves.get(label) for label in changes}, self.memo)
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
    undone = [entry.undo.shelves.values() for entry in state.history if entry.undo is not None]
    shelves = [*state.shelves.values(), *(shelf for former in undone for shelf in former if shelf is not None)]
    return {example.identity for shelf in shelves for example in shelf.examples}


def _moved(label_of: Mapping[bytes, Label], before: Iterable[Shelf | None], after: Changes) -> dict[bytes, Label]:
    """Return the labels of all images after a change, without going through those that it did not touch.

    No image may be there twice, as it may in a model that was not learned here: the other copy would be lost.
    """
    moved = dict(label_of)
    for shelf in before:
        for example in shelf.examples if shelf is not None else ():
            moved.pop(example.identity, None)
    for label, shelf in after.items():
        for example in shelf.examples if shelf is not None else ():
            moved[example.identity] = label
    return moved


_FIELDS = {field.name for field in fields(State)}
