"""The operations on a project: each returns the next state and a receipt, or raises HyCalError."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hycal.base import IncrementalClassifier
from hycal.embedding.store import Skipped
from hycal.errors import HyCalError
from hycal.project.examples import ClassExamples, Example, Space
from hycal.project.labels import (
    Target,
    check_class_name,
    check_length,
    check_name,
    class_label,
    own_labels,
    split_label,
)
from hycal.project.state import Changes, State
from hycal.state.steps import Step
from hycal.validation import Floats, Label, ModelKind, check_label, check_mergeable, check_one_kind, normal_name


@dataclass(frozen=True)
class Arrival:
    """An image to learn, embedded, with its label `domain/class`.

    Examples
    --------
    >>> import numpy as np
    >>> Arrival("flower/rose", Example(np.array([1.0, 0.0], np.float32), name="1.jpg")).label
    'flower/rose'
    """

    label: str
    example: Example


@dataclass(frozen=True)
class Receipt:
    """What a change did.

    Attributes
    ----------
    action, what : str
        As in the history.
    before, after : str
        Hash of the model. Equal hashes mean that the model did not change.
    images : mapping of label to int
        Images learned, or forgotten, by class.
    skipped : tuple of Skipped
    undoable : bool
        Whether `undo` can reverse it; False after `forget_for_good`, which removes the undo data from the file.
    touched : tuple of labels
        Classes that were added, changed or removed.
    change : str
        What names the change in the history, see `HistoryEntry.id`; "" if nothing was changed.

    Examples
    --------
    >>> Receipt("rename", "flower to plant", before="0a", after="1b", images={}).undoable
    True
    """

    action: str
    what: str
    before: str
    after: str
    images: Mapping[Label, int]
    skipped: tuple[Skipped, ...] = ()
    undoable: bool = True
    touched: tuple[Label, ...] = ()
    change: str = ""


_UNIT = 1e-4

Change = tuple[State, Receipt]


def learn(state: State, arrivals: Sequence[Arrival], texts: Mapping[str, Floats] | None = None) -> Change:
    """Learn images; an image that the project knows already is skipped.

    `texts` has text embeddings by label, for classes that have none yet.
    """
    fresh, skipped = _new_examples(state, arrivals)
    named = _normal_names(texts)
    changes = {label: _class_with(state, label, examples, named) for label, examples in fresh.items()}
    counts = {label: len(examples) for label, examples in fresh.items()}
    what = describe_counts(counts) if counts else "no new images"
    return changed(state, changes, "learn", what, counts, skipped, memo=memo_after(state, changes, fresh))


def correct(state: State, example: Example, label: str, texts: Mapping[str, Floats] | None = None) -> Change:
    """Learn an image as `label`, and forget it as any other class."""
    known, label = state.label_of.get(example.identity), str(own_labels(state, [label])[label])
    if known == label:
        return state, unchanged(state, "correct", f"the image was {label} already")
    if label not in state.classes:
        check_class_name(label)
    taken: dict[Label, ClassExamples | None] = {}
    if known is not None:
        taken[known] = state.classes[known].without([example.identity])
    grown = _class_with(state, label, [example], _normal_names(texts))
    what = f"1 image is {label}" + ("" if known is None else f", not {known}")
    memo = memo_after(state, {label: grown}, {label: [example]})
    return changed(state, {**taken, label: grown}, "correct", what, {label: 1}, memo=memo)


def forget(state: State, target: Target) -> Change:
    """Forget classes or images: the model becomes the one that never learned them."""
    changes: dict[Label, ClassExamples | None] = {}
    for label, identities in target.images.items():
        changes[label] = state.classes[label].without(identities)
    counts = {label: len(state.classes[label].examples) - size_of(class_) for label, class_ in changes.items()}
    return changed(state, changes, "forget", describe_counts(counts), counts)


def rename(state: State, old: Target, new: str) -> Change:
    """Rename a class, or every class of a domain.

    Predictions change only in that name, unless classes come to another domain; the receipt says so.
    """
    names = new_names(state, old, new)
    if all(label == renamed for label, renamed in names.items()):
        return state, unchanged(state, "rename", f"{old.name} has that name already")
    changes: dict[Label, ClassExamples | None] = dict.fromkeys(names)
    for label, renamed in names.items():
        changes[renamed] = replace(state.classes[label], domain=split_label(renamed)[0])
    counts: dict[Label, int] = {name: len(state.classes[label].examples) for label, name in names.items()}
    memo = state.classifier.rename_memo(state.memo, names)
    return changed(state, changes, "rename", describe_rename(state, old, new, names), counts, memo=memo)


def merge(state: State, other: State) -> Change:
    """Learn every image of `other`; an image that both have counts once."""
    other.classifier.records_.check_samples("be merged into a model that is not; merge that one into this one")
    check_mergeable(model_kind(state), model_kind(other))
    arrivals = [
        Arrival(label, example)  # type: ignore[arg-type]
        for label, class_ in other.classes.items()
        for example in class_.examples
    ]
    fresh, skipped = _new_examples(state, arrivals)
    theirs = {own: other.classes[label] for label, own in own_labels(state, other.classes).items()}
    changes = {label: _grown(state.classes.get(label), theirs[label], examples) for label, examples in fresh.items()}
    counts = {label: len(examples) for label, examples in fresh.items()}
    what = f"{describe_counts(counts)} from another model" if counts else "no new images"
    return changed(state, changes, "merge", what, counts, skipped, memo={**other.memo, **state.memo})


def _grown(own: ClassExamples | None, other: ClassExamples, examples: Iterable[Example]) -> ClassExamples:
    """Return a class with examples of the same class of another model; its own domain and text stay."""
    own = own or ClassExamples(normal_name(other.domain), ())
    return ClassExamples.of(own.domain, (*own.examples, *examples), other.text if own.text is None else own.text)


def changed(
    state: State,
    changes: Changes,
    action: str,
    what: str,
    counts: Mapping[Label, int],
    skipped: Iterable[Skipped] = (),
    *,
    memo: Mapping[str, object] | None = None,
    method: IncrementalClassifier | None = None,
    space: Space | None = None,
) -> Change:
    """Return the state with some classes, method and space replaced, and a history entry and a receipt about it."""
    if not changes and method is None:
        return state, replace(unchanged(state, action, what), skipped=tuple(skipped))
    check_one_kind(label for label, class_ in {**state.classes, **changes}.items() if class_ is not None)
    following = state.with_classes(changes, memo=memo, method=method, space=space)
    recorded = state.with_entry(following, changes, action=action, what=what)
    receipt = Receipt(action, what, state.hash, following.hash, counts, tuple(skipped), touched=tuple(changes))
    return recorded, replace(receipt, change=recorded.history[-1].id)


def unchanged(state: State, action: str, what: str) -> Receipt:
    """Return the receipt of an action that had nothing to change."""
    return Receipt(action, what, state.hash, state.hash, {}, undoable=False)


def _new_examples(state: State, arrivals: Sequence[Arrival]) -> tuple[dict[Label, list[Example]], list[Skipped]]:
    """Return the new images by label, and the others with the reason why they are skipped."""
    known, own = dict(state.label_of), own_labels(state, (arrival.label for arrival in arrivals))
    fresh: dict[Label, list[Example]] = defaultdict(list)
    skipped = []
    for arrival in arrivals:
        example, label = arrival.example, own[arrival.label]
        if example.identity not in known:
            known[example.identity] = label
            fresh[label].append(example)
        elif known[example.identity] == label:
            skipped.append(Skipped(example.name, f"learned already as {label}"))
        else:
            reason = f"the same image is known as {known[example.identity]}; correct it if it is {label}"
            skipped.append(Skipped(example.name, reason))
    return dict(fresh), skipped


def _normal_names(texts: Mapping[str, Floats] | None) -> dict[str, Floats]:
    return {normal_name(name): text for name, text in (texts or {}).items()}


def _class_with(state: State, label: Label, examples: Sequence[Example], texts: Mapping[str, Floats]) -> ClassExamples:
    check_label(label)
    check_rows(state, examples)
    old = state.classes.get(label)
    if old is not None:
        return old.with_examples(examples)
    return ClassExamples.of(split_label(label)[0], examples, texts.get(str(label)))


def check_rows(state: State, examples: Sequence[Example]) -> None:
    """Refuse embeddings that are not unit rows of the project's space: a file with them could not be read."""
    for example in examples:
        row = example.row
        sound = row.dtype == np.float32 and row.shape == (state.space.dimension,)
        lengths = [float(row[part] @ row[part]) for part in state.space.columns] if sound else []
        unit = [abs(length - 1.0) < _UNIT for length in lengths]  # NaN is not
        whole = all(one or (length == 0.0 and any(unit)) for one, length in zip(unit, lengths, strict=True))
        if not sound or not whole:
            views = "" if state.space.views is None else f", unit vectors of {state.space.views} side by side or zeros"
            raise HyCalError(
                f"{example.name or 'An image'} has an embedding of type {row.dtype} and shape {row.shape}; expected a "
                f"unit float32 vector of {state.space.dimension} numbers{views}. Embed it with {state.space.name!r}."
            )


def memo_after(
    state: State, changes: Mapping[Label, ClassExamples], fresh: Mapping[Label, Sequence[Example]]
) -> Mapping[str, object]:
    """Return the method's memo after it has learned the `fresh` images, domain by domain."""
    by_domain: dict[str, dict[Label, Floats]] = defaultdict(dict)
    for label, examples in fresh.items():
        by_domain[changes[label].domain][label] = np.stack([example.row for example in examples])
    memo = state.memo
    for domain, samples in by_domain.items():
        memo = state.classifier.remember(memo, Step(samples, domain, {}))
    return memo


def size_of(class_: ClassExamples | None) -> int:
    """Return the number of images of a class, 0 of none."""
    return 0 if class_ is None else len(class_.examples)


def new_names(state: State, old: Target, new: str) -> dict[Label, str]:
    """Return the new label of each class of `old`; none may be that of another class."""
    if old.kind == "image":
        raise HyCalError("Only a class or a domain has a name to change; an image is known by its content.")
    new = normal_name(new)
    if old.kind == "class":
        (label,) = old.images
        check_class_name(new) if "/" in new else check_name(new)
        domain, _ = split_label(label)
        names = {label: new if "/" in new or not domain else class_label(domain, new)}
    else:
        check_name(new)
        names = {label: class_label(new, split_label(label)[1]) for label in state.domains[old.name]}
    for renamed in names.values():
        check_length(renamed)
    same = own_labels(state, names.values())
    taken = [same[label] for label in names.values() if same[label] in state.classes and same[label] not in names]
    if taken:
        raise HyCalError(
            f"{taken[0]!r} exists already, so nothing was renamed. Choose another name, or forget it first."
        )
    return names


def joined_domain(state: State, old: Target, names: Mapping[Label, str]) -> str:
    """Return the domain that a renamed domain becomes one with, "" if none."""
    new = split_label(next(iter(names.values())))[0]
    taken = {normal_name(domain) for domain in state.domains if domain != old.name}
    return new if old.kind == "domain" and new in taken else ""


def describe_rename(state: State, old: Target, new: str, names: Mapping[Label, str]) -> str:
    """Describe a renaming, and say where it changes which classes are in one domain: answers may change then."""
    joined = joined_domain(state, old, names)
    if joined:
        return f"{old.name} to {new}; {joined} was a domain already, and the two are one now, so answers may change"
    moved = any(split_label(name)[0] != state.classes[label].domain for label, name in names.items())
    if old.kind == "class" and moved:
        return f"{old.name} to {new}; it is in another domain now, so answers may change"
    return f"{old.name} to {new}"


def model_kind(state: State) -> ModelKind:
    """Return what another model must have in common with this one to be merged into it."""
    space = state.space
    return ModelKind(
        type(state.classifier).__name__, space.dimension, space.fingerprint, space.name, state.classifier.views
    )


def describe_counts(counts: Mapping[Label, int]) -> str:
    """Describe how many images of how many classes, as in "3 images of 2 classes"."""
    total = sum(counts.values())
    classes = next(iter(map(str, counts))) if len(counts) == 1 else f"{len(counts):,} classes"
    return f"{total:,} image{'' if total == 1 else 's'} of {classes}"
