"""All that a model knows: an immutable table of class records, and the operations that lead from one to the next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.errors import HyCalError
from hycal.statistics import ClassStatistics
from hycal.validation import Floats, Label, check_one_kind

_SAME_TEXT = 1e-4  # how far two runs of one text encoder may lie apart


@dataclass(frozen=True, eq=False)
class ClassRecord:
    """One class: its statistics, the domain it belongs to, and its text embedding if it has one."""

    statistics: ClassStatistics
    domain: str
    text: Floats | None = None

    @property
    def count(self) -> int:
        """K_c."""
        return self.statistics.count

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self.statistics.nbytes + (0 if self.text is None else self.text.nbytes)


@dataclass(frozen=True, eq=False)
class Step:
    """A validated learning step: rows by label, one domain (None where the caller named none), text by label."""

    samples: Mapping[Label, Floats]
    domain: str | None
    text: Mapping[Label, Floats]

    @classmethod
    def of(cls, X: Floats, labels: Sequence[Label], domain: str | None, text: Mapping[Label, Floats]) -> Step:
        """Group the rows of X by label."""
        rows: defaultdict[Label, list[int]] = defaultdict(list)
        for row, label in enumerate(labels):
            rows[label].append(row)
        return cls({label: X[indices] for label, indices in rows.items()}, domain, text)


@dataclass(frozen=True, eq=False)
class Records:
    """Records by label. Every operation returns a new table, or raises and leaves this one as it is."""

    by_label: Mapping[Label, ClassRecord]

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
    def nbytes(self) -> int:
        """Bytes of state of all classes."""
        return sum(record.nbytes for record in self.ordered)

    @property
    def width(self) -> int:
        """Embedding dimension."""
        return int(self.ordered[0].statistics.samples.shape[1])

    def learn(self, step: Step) -> Records:
        """Return the table with `step` learned: new labels appear, known ones grow."""
        self._check_kind(step.samples)
        return self._with(
            {label: _grown(label, self.by_label.get(label), samples, step) for label, samples in step.samples.items()}
        )

    def merge(self, other: Records) -> Records:
        """Return the table of both models' samples."""
        self._check_kind(other.by_label)
        return self._with(
            {
                label: _grown(
                    label,
                    self.by_label.get(label),
                    record.statistics.samples,
                    Step({}, record.domain, {} if record.text is None else {label: record.text}),
                )
                for label, record in other.by_label.items()
            }
        )

    def forget(self, labels: Iterable[Label]) -> Records:
        """Return the table without `labels`."""
        unwanted = dict.fromkeys(labels)
        self.check_known(unwanted)
        return Records({label: record for label, record in self.by_label.items() if label not in unwanted})

    def remove(self, step: Step) -> Records:
        """Return the table as if the samples of `step` had never been learned; a class left empty is gone."""
        self.check_known(step.samples)
        changed = {}
        for label, samples in step.samples.items():
            old = self.by_label[label]
            try:
                changed[label] = ClassRecord(old.statistics.remove(samples), old.domain, old.text)
            except HyCalError as error:
                raise HyCalError(f"Class {label!r}: {error}") from None
        return Records({k: record for k, record in (dict(self.by_label) | changed).items() if record.count})

    def check_known(self, labels: Iterable[Label]) -> None:
        """Refuse labels that are not in the table."""
        unknown = [label for label in labels if label not in self.by_label]
        if unknown:
            known = ", ".join(repr(label) for label in self.labels[:5]) + (", ..." if len(self.labels) > 5 else "")
            raise HyCalError(
                f"{_listed(unknown)} {'is' if len(unknown) == 1 else 'are'} not among the {len(self.labels)} learned "
                f"classes ({known}). Nothing was changed; check the spelling against classes_."
            )

    def check_text(self, needed_by: str) -> None:
        """Refuse classes without text where `needed_by` cannot do without."""
        missing = [label for label, record in self.by_label.items() if record.text is None]
        if missing:
            raise HyCalError(
                f"{needed_by} needs a text embedding for every class, and {_listed(missing)} "
                f"{'has' if len(missing) == 1 else 'have'} none. Pass text={{label: vector}}, or use image embeddings "
                'alone (fusion="image").'
            )

    def _check_kind(self, labels: Iterable[Label]) -> None:
        check_one_kind([*list(self.by_label)[:1], *labels])

    def _with(self, changed: Mapping[Label, ClassRecord]) -> Records:
        return Records({**self.by_label, **changed})


def _grown(label: Label, old: ClassRecord | None, samples: Floats, step: Step) -> ClassRecord:
    text = step.text.get(label)
    if old is None:
        return ClassRecord(ClassStatistics.of(samples), step.domain or "", text)
    if step.domain is not None and step.domain != old.domain:
        raise HyCalError(
            f"Class {label!r} belongs to domain {old.domain!r} and cannot also be learned in {step.domain!r}. "
            f'Use a label of its own, such as "{step.domain}/{label}", or pass domain={old.domain!r} to update it.'
        )
    if old.text is not None and text is not None and not np.allclose(old.text, text, atol=_SAME_TEXT):
        raise HyCalError(
            f"The text embedding of {label!r} differs from the one it was learned with. "
            "Use one prompt and one text encoder throughout, or forget the class and learn it again."
        )
    return ClassRecord(old.statistics.add(samples), old.domain, text if old.text is None else old.text)


def _listed(labels: Sequence[Label], most: int = 5) -> str:
    names = ", ".join(repr(label) for label in labels[:most])
    return names if len(labels) <= most else f"{names} and {len(labels) - most} more"
