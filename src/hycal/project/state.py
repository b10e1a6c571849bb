"""One whole state of a project, never changed in place: the model, the images behind it, and its history."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hycal.base import IncrementalClassifier
from hycal.project.examples import Example, Shelf
from hycal.project.history import Entry, History, Undo, appended, now
from hycal.records import Records
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
    """

    classifier: IncrementalClassifier
    shelves: Mapping[Label, Shelf]
    space: Space
    history: History = ()

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
        return self.classifier._table.memo

    def changed(self, changes: Changes, *, memo: Mapping[str, Any] | None = None) -> State:
        """Return the state with other shelves at some labels, None for no class; the history stays."""
        shelves = {**self.shelves, **changes}
        kept = {label: shelf for label, shelf in shelves.items() if shelf is not None}
        records = Records({label: shelf.record for label, shelf in kept.items()}, self.memo if memo is None else memo)
        return replace(self, classifier=self.classifier.knowing(records), shelves=kept)

    def recorded(self, following: State, changes: Changes, *, action: str, what: str) -> State:
        """Return `following`, made of this state by `changes`, with an entry about it in its history."""
        undo = Undo({label: self.shelves.get(label) for label in changes}, self.memo)
        entry = Entry(now(), action, what, self.hash, following.hash, undo)
        return replace(following, history=appended(self.history, entry))
