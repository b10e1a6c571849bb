"""Sealed projects: a model without images, and what can be done to it. It keeps a history, and no undo."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from hycal.base import IncrementalClassifier
from hycal.errors import HyCalError
from hycal.project.changes import (
    Arrival,
    Change,
    Receipt,
    check_rows,
    describe_counts,
    describe_rename,
    joined_domain,
    model_kind,
    new_names,
    unchanged,
)
from hycal.project.examples import ClassExamples, Example
from hycal.project.labels import Target, check_class_name, own_labels, split_label
from hycal.project.state import State
from hycal.state.sealed import SealedRecords, refuse
from hycal.state.sealed_views import SealedViews
from hycal.validation import Floats, Label, check_mergeable, check_one_kind, normal_name

_KEEPS = {
    "means": "counts and means of classes",
    "groups": "counts and means of classes, and the scatter of each domain",
    "classes": "counts, means and covariances of classes",
}


def seal(state: State) -> State:
    """Return the project sealed: no images, names, thumbnails or history."""
    return replace(_state(state, state.classifier.seal()), history=(), version=0)


def describe(state: State) -> str:
    """Return what a sealed model holds, and what can be found out from that; "no" of another one."""
    records = state.classifier.records_
    if not isinstance(records, SealedRecords):
        return "no"
    tables, exposed, total = _tables(records), len(exposed_classes(records)), len(records.labels)
    several = f", in each of {len(tables)} views" if len(tables) > 1 else ""
    told = {label for table in tables for label in _telling(table)}
    where = f"{len(told):,} of {total:,} classes"
    if tables[0].keeps == "groups":
        where = f"{len({records.by_label[label].domain for label in told}):,} of {len(state.domains):,} domains"
    return (
        f"{_KEEPS[tables[0].keeps]}{several}; images of {exposed:,} of {total:,} classes could be computed "
        f"from that, and in {where} whoever has an image could check whether it was learned"
    )


def exposed_classes(records: SealedRecords) -> list[Label]:
    """Return the classes whose embeddings in any view can be computed from what is kept, since they are so few."""
    return sorted({label for table in _tables(records) for label in _exposed(table)})


def _tables(records: SealedRecords) -> list[SealedRecords]:
    """Return the table of each view; that of a model of one encoder alone."""
    views = records.views if isinstance(records, SealedViews) else (records,)
    return [table for table in views if table is not None]


def _exposed(records: SealedRecords) -> set[Label]:
    """Return the classes whose embeddings can be computed from one table.

    The mean of one image is the image. N unit rows of v degrees of freedom are known but for a rotation of v
    dimensions, which has v (v - 1)/2 angles, and their lengths are N equations.
    """
    single = {label for label in records.labels if records.by_label[label].count == 1}
    parts: defaultdict[str, list[Label]] = defaultdict(list)
    for label in records.labels:
        shared = records.group_of[label] in records.spreads
        parts[records.group_of[label] if shared else f"{records.group_of[label]}\n{label}"].append(label)
    for members in parts.values() if records.keeps != "means" else ():
        N = sum(records.by_label[label].count for label in members)
        v = N - len(members)
        if v * (v - 1) / 2 <= N and v <= records.width:
            single |= set(members)
    return single


def _telling(table: SealedRecords) -> set[Label]:
    """Return the classes of one table of which whoever has an image could check whether it was learned.

    Their scatter has fewer dimensions than rows have, so other images lie outside of its plane; images that count twice
    add none. Or they have one or two images, of mean m: 2 m - x has length 1 if x is one of them, as it is the other.
    """
    # Features may be wider than embeddings, and so may their scatter; not that of embeddings fused with a text.
    width = table.means.shape[1] if table.keeps == "groups" else table.width
    found = set()
    for label, own in zip(table.labels, table.moments, strict=True):
        factor = table.spreads.get(table.group_of[label], own).factor
        if own.count <= 2 or (table.keeps != "means" and len(factor) < width):
            found.add(label)
    return found


def learn(state: State, arrivals: Sequence[Arrival], texts: Mapping[str, Floats] | None = None) -> Change:
    """Learn images. One that was learned before counts twice: a sealed model does not know its images."""
    own = own_labels(state, (arrival.label for arrival in arrivals))
    by_label: defaultdict[Label, list[Floats]] = defaultdict(list)
    for arrival in arrivals:
        if own[arrival.label] not in state.classes:
            check_class_name(str(own[arrival.label]))
        by_label[own[arrival.label]].append(arrival.example.row)
    check_rows(state, [arrival.example for arrival in arrivals])
    check_one_kind([*state.classes, *by_label])
    named = {normal_name(name): text for name, text in (texts or {}).items()}
    classifier = copy.copy(state.classifier)
    domains: defaultdict[str, list[Label]] = defaultdict(list)
    for label in by_label:
        domains[state.classes[label].domain if label in state.classes else split_label(label)[0]].append(label)
    for domain, labels in sorted(domains.items()):
        X, y = (
            np.concatenate([by_label[label] for label in labels]),
            [label for label in labels for _ in by_label[label]],
        )
        new = {label: named[str(label)] for label in labels if label not in state.classes and str(label) in named}
        classifier.partial_fit(X, y, domain=domain, text=new)
    return _changed(state, classifier, "learn", {label: len(rows) for label, rows in by_label.items()})


def correct(state: State, example: Example, label: str, texts: Mapping[str, Floats] | None = None) -> Change:
    """Refuse: a sealed model does not know which classes an image was learned as."""
    refuse("correct single images")


def forget(state: State, target: Target) -> Change:
    """Forget classes. Their part of a scatter that they share with others stays."""
    if target.kind == "image":
        refuse("forget single images")
    counts = {label: state.classes[label].count for label in target.images}
    if len(counts) == len(state.classes):
        raise HyCalError("A sealed model keeps its last class. Nothing was changed; remove the file instead.")
    return _changed(state, copy.copy(state.classifier).forget(list(counts)), "forget", counts)


def left_behind(state: State, labels: Iterable[Label]) -> str:
    """Return what a sealed model keeps of classes once they are forgotten, as a sentence for users."""
    records, gone, keys = state.classifier.records_, set(labels), set[str]()
    for table in _tables(records) if isinstance(records, SealedRecords) else ():
        left = {key for label, key in table.group_of.items() if label not in gone}
        shared = {label for label, key in table.group_of.items() if key in table.spreads and key in left}
        keys |= {table.group_of[label] for label in shared & gone if table.by_label[label].count > 1}
    domains = sorted({key.partition("\n")[0] for key in keys})
    owners = " and ".join(f"domain {domain}" if domain else "all classes" for domain in domains)
    part = f"The covariance of {owners} keeps its part, and the" if domains else "The"
    return f"{part} calibration stays as it was at sealing; forget before you seal if no trace may stay."


def rename(state: State, old: Target, new: str) -> Change:
    """Rename a class, or every class of a domain. Two domains do not become one: no undo could part them again."""
    names = new_names(state, old, new)
    joined = joined_domain(state, old, names)
    if joined:
        raise HyCalError(
            f"{joined!r} is a domain already, and a sealed model has no undo that could part the two again. Nothing "
            "was changed. Choose another name, or rename the classes one by one."
        )
    if all(label == renamed for label, renamed in names.items()):
        return state, unchanged(state, "rename", f"{old.name} has that name already")
    records = state.classifier.records_
    assert isinstance(records, SealedRecords)
    renamed = records.rename(names, {label: split_label(name)[0] for label, name in names.items()})
    counts: dict[Label, int] = {name: state.classes[label].count for label, name in names.items()}
    memo = state.classifier.rename_memo(state.memo, names)
    what = describe_rename(state, old, new, names)
    return _changed(state, state.classifier.with_records(renamed.with_memo(memo)), "rename", counts, what)


def merge(state: State, other: State) -> Change:
    """Learn all that another model learned, sealed or not. An image that both know counts twice."""
    check_mergeable(model_kind(state), model_kind(other))
    counts = {own: other.classes[label].count for label, own in own_labels(state, other.classes).items()}
    return _changed(state, copy.copy(state.classifier).merge(other.classifier), "merge", counts)


def _state(state: State, classifier: IncrementalClassifier) -> State:
    records = classifier.records_.by_label
    return replace(
        state,
        classifier=classifier,
        classes={label: ClassExamples.of_record(record, ()) for label, record in records.items()},
    )


def _changed(
    state: State, classifier: IncrementalClassifier, action: str, counts: Mapping[Label, int], what: str = ""
) -> Change:
    """Return the state of the changed classifier, with an entry that no undo reverses."""
    what = what or describe_counts(counts)
    following = state.noted(_state(state, classifier), action, what)
    receipt = Receipt(action, what, state.hash, following.hash, counts, undoable=False, touched=tuple(counts))
    return following, replace(receipt, change=following.history[-1].id)
