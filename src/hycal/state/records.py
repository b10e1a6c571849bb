"""Everything a model knows: an immutable table of class records, and the operations that return a new table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.errors import HyCalError
from hycal.state.moments import Moments
from hycal.state.samples import ClassSamples
from hycal.state.steps import Step
from hycal.validation import Doubles, Floats, Label, check_label, check_one_kind

_SAME_TEXT = 5e-4  # largest difference between two runs of one text encoder, or by rounding to half precision
_OF_LABELS = ("labels", "column_of", "classes")  # what follows from the labels of a table alone
_OF_DOMAINS = ("domains", "groups")
_CACHED = (*_OF_LABELS, *_OF_DOMAINS, "ordered", "counts", "nbytes")


@dataclass(frozen=True, eq=False)
class ClassRecord:
    """One class: its samples, the domain it belongs to, and its text embedding if it has one.

    A class of a sealed model has moments, and no samples.
    """

    samples: ClassSamples
    domain: str
    text: Floats | None = None
    moments: Moments | None = None

    @property
    def count(self) -> int:
        """K_c."""
        return self.samples.count if self.moments is None else self.moments.count

    @property
    def mean(self) -> Doubles:
        """The plain mean of the embeddings."""
        return self.samples.mean if self.moments is None else self.moments.centre.astype(np.float64)

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        own = self.samples.nbytes if self.moments is None else self.moments.nbytes
        return own + (0 if self.text is None else self.text.nbytes)

    def view(self, part: slice) -> ClassRecord:
        """Return the class as one view knows it, by the samples that have the view; the same object at every call.

        The samples keep their order, so that those of all views belong together.
        """
        known: dict[int, ClassRecord] = vars(self).setdefault("_views", {})
        if part.start not in known:
            rows = self.samples.rows[:, part]
            has = rows.any(axis=1)
            samples = ClassSamples(rows if has.all() else rows[has])
            known[part.start] = ClassRecord(samples, self.domain, text_in(self.text, part))
        return known[part.start]


@dataclass(frozen=True, eq=False)
class Records:
    """Records by label. Every operation returns a new table, or raises and leaves this one unchanged.

    `memo` holds what a method remembers beside the samples: JSON values that the model file stores. Learning may
    replace the memo and forgetting keeps it. Merging adds the entries of the other memo that this one does not have.
    """

    by_label: Mapping[Label, ClassRecord]
    memo: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """Labels, sorted: the order of every column."""
        return tuple(sorted(self.by_label))  # one kind, so they compare

    @cached_property
    def ordered(self) -> tuple[ClassRecord, ...]:
        """Records in the order of `labels`."""
        return tuple(self.by_label[label] for label in self.labels)

    @cached_property
    def column_of(self) -> Mapping[Label, int]:
        """Position of each label in `labels`."""
        return {label: column for column, label in enumerate(self.labels)}

    @cached_property
    def classes(self) -> npt.NDArray[Any]:
        """`labels` as an array."""
        return np.array(self.labels)

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """K_c in the order of `labels`."""
        return np.array([record.count for record in self.ordered], dtype=np.int64)

    @cached_property
    def domains(self) -> npt.NDArray[Any]:
        """Domain of each class in the order of `labels`."""
        return np.array([record.domain for record in self.ordered])

    @cached_property
    def groups(self) -> npt.NDArray[np.intp]:
        """Number of the domain of each class, counted from 0 in the order of their names."""
        return np.unique(self.domains, return_inverse=True)[1]

    @cached_property
    def nbytes(self) -> int:
        """Bytes of state of all classes."""
        return sum(record.nbytes for record in self.ordered)

    @property
    def width(self) -> int:
        """Embedding dimension."""
        return int(self.ordered[0].samples.rows.shape[1])

    @property
    def unseen(self) -> list[Label]:
        """Labels of classes that were announced by their text and have no samples yet."""
        return [self.labels[column] for column in np.flatnonzero(self.counts == 0)]

    @property
    def seen(self) -> Records:
        """Classes that have samples; raises if there are none."""
        unseen = self.unseen
        if len(unseen) == len(self.labels):
            raise HyCalError("Every class was only announced, by its text. Learn images of a class first.")
        return self.forget(unseen) if unseen else self

    def view(self, part: slice) -> Records:
        """Return the table of one view: the classes that have samples or a text there."""
        classes = {label: record.view(part) for label, record in self.by_label.items()}
        return Records({k: own for k, own in classes.items() if own.count or own.text is not None}, self.memo)

    def stacked(self) -> Floats:
        """Return all samples, class after class in the order of `labels`, shape (N, d)."""
        return np.concatenate([record.samples.rows for record in self.ordered])

    def columns(self, classes: Iterable[Any]) -> npt.NDArray[np.intp]:
        """Return the positions of the labels `classes`."""
        labels: list[Label] = [check_label(label) for label in classes]
        if not labels:
            raise HyCalError("No candidate classes were given. Pass at least one label, or None for all.")
        self.check_known(labels)
        return np.array([self.column_of[label] for label in labels], dtype=np.intp)

    def with_memo(self, memo: Mapping[str, Any]) -> Records:
        """Return the table with another memo."""
        return self._keeping(replace(self, memo=memo), _CACHED)

    def learn(self, step: Step) -> Records:
        """Return the table with `step` learned: new labels appear, known ones grow."""
        self._check_kind(step.samples)
        return self._with(
            {label: grown(label, self.by_label.get(label), samples, step) for label, samples in step.samples.items()}
        )

    def announce(self, text: Mapping[Label, Floats], domain: str | None) -> Records:
        """Return the table with classes that have a text and no samples yet; a known class keeps its samples."""
        self._check_kind(text)
        step = Step({}, domain, text)
        return self._with(
            {
                label: grown(label, self.by_label.get(label), np.empty((0, len(vector)), np.float32), step)
                for label, vector in text.items()
            }
        )

    def merge(self, other: Records) -> Records:
        """Return the table of both models' samples."""
        self._check_kind(other.by_label)
        merged = self._with(
            {
                label: grown(
                    label,
                    self.by_label.get(label),
                    record.samples.rows,
                    Step({}, record.domain or None, {} if record.text is None else {label: record.text}),
                )
                for label, record in other.by_label.items()
            }
        )
        return merged.with_memo({**other.memo, **self.memo})

    def forget(self, labels: Iterable[Label]) -> Records:
        """Return the table without `labels`."""
        unwanted = dict.fromkeys(labels)
        self.check_known(unwanted)
        return replace(self, by_label={k: record for k, record in self.by_label.items() if k not in unwanted})

    def remove(self, step: Step) -> Records:
        """Return the table as if the samples of `step` had never been learned; classes left empty are removed."""
        self.check_known(step.samples)
        changed = {}
        for label, samples in step.samples.items():
            old = self.by_label[label]
            try:
                changed[label] = ClassRecord(old.samples.remove(samples), old.domain, old.text)
            except HyCalError as error:
                raise HyCalError(f"Class {label!r}: {error}") from None
        empty = {label for label, record in changed.items() if not record.count}
        if not empty:
            return self._with(changed)
        grown = {**self.by_label, **changed}
        return replace(self, by_label={k: record for k, record in grown.items() if k not in empty})

    def check_known(self, labels: Iterable[Label]) -> None:
        """Raise if a label is not in the table."""
        unknown = [label for label in labels if label not in self.by_label]
        if unknown:
            known = ", ".join(repr(label) for label in self.labels[:5]) + (", ..." if len(self.labels) > 5 else "")
            raise HyCalError(
                f"{_listed(unknown)} {'is' if len(unknown) == 1 else 'are'} not among the {len(self.labels)} learned "
                f"classes ({known}). Nothing was changed; check the spelling against classes_."
            )

    def check_text(self, needed_by: str, instead: str) -> None:
        """Raise if a class has no text, which `needed_by` needs; `instead` says what to use without text."""
        missing = [label for label, record in self.by_label.items() if record.text is None]
        if missing:
            raise HyCalError(
                f"{needed_by} needs a text embedding for every class, and {_listed(missing)} "
                f"{'has' if len(missing) == 1 else 'have'} none. Texts come from an "
                f"encoder that embeds class names, in Python from text={{label: vector}}; without them {instead}."
            )

    def check_samples(self, needed_to: str) -> None:
        """Raise if the samples are not kept, which are `needed_to` do something; only a sealed table has none."""

    def check_seen(self, method: str) -> None:
        """Raise if a class has no samples, where `method` learns from samples alone."""
        unseen = self.unseen
        if unseen:
            raise HyCalError(
                f"{method} recognises classes by their images, and {_listed(unseen)} "
                f"{'has' if len(unseen) == 1 else 'have'} none yet. Learn images with partial_fit, or use a method "
                "that scores a class by its text alone, such as ZeroShot. Nothing was changed."
            )

    def _check_kind(self, labels: Iterable[Label]) -> None:
        check_one_kind([*list(self.by_label)[:1], *labels])

    def _with(self, changed: Mapping[Label, ClassRecord]) -> Records:
        table = replace(self, by_label={**self.by_label, **changed})
        if len(table.by_label) != len(self.by_label):
            return table
        ordered, counts = list(self.ordered), self.counts.copy()
        for label, record in changed.items():
            column = self.column_of[label]
            ordered[column], counts[column] = record, record.count
        vars(table).update(ordered=tuple(ordered), counts=counts)
        same = all(record.domain == self.by_label[label].domain for label, record in changed.items())
        return self._keeping(table, (*_OF_LABELS, *_OF_DOMAINS) if same else _OF_LABELS)

    def _keeping(self, table: Records, names: Iterable[str]) -> Records:
        """Return `table`, which takes over what was computed for this one under `names`: sorting takes long."""
        vars(table).update({name: value for name, value in vars(self).items() if name in names})
        return table


def grown(label: Label, old: ClassRecord | None, samples: Floats, step: Step) -> ClassRecord:
    """Return a class that has learned `samples` of a step; its domain and its text must fit those it has."""
    text = step.text.get(label)
    if old is None:
        return ClassRecord(ClassSamples.of(samples), step.domain or "", text)
    domain = old.domain
    if not old.count and not domain:
        domain = step.domain or ""  # announced without a domain: the first images set it
    elif step.domain is not None and step.domain != domain:
        raise HyCalError(
            f"Class {label!r} belongs to domain {old.domain!r} and cannot also be learned in {step.domain!r}. "
            f'Use a label of its own, such as "{step.domain}/{label}", or pass domain={old.domain!r} to update it.'
        )
    if old.text is not None and text is not None and not np.allclose(old.text, text, atol=_SAME_TEXT):
        raise HyCalError(
            f"The text embedding of {label!r} differs from the one it was learned with. "
            "Use one prompt and one text encoder throughout, or forget the class and learn it again."
        )
    return ClassRecord(old.samples.add(samples), domain, text if old.text is None else old.text)


def text_in(text: Floats | None, part: slice) -> Floats | None:
    """Return the text of a class in one view; None if it has none there."""
    return None if text is None or not text[part].any() else text[part]


def texts_of(classes: Iterable[ClassRecord]) -> Doubles:
    """Return the texts of classes, all of which have one, (C, d)."""
    return np.stack([np.asarray(record.text, dtype=np.float64) for record in classes])


def _listed(labels: Sequence[Label], most: int = 5) -> str:
    names = ", ".join(repr(label) for label in labels[:most])
    return names if len(labels) <= most else f"{names} and {len(labels) - most} more"
