"""What differs between two tables of records: which classes, and exactly which samples.

Class records are never changed in place and are shared between tables. So the same object is the same class, unchanged,
whatever its label; only the samples of other classes are compared.

What is fitted to all samples (a temperature, a threshold, a prior) hardly moves with a few of them. It is kept while
fewer than one sample in fifty has changed since it was fitted. Models of fewer than 1,000 samples always fit it anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.state.records import ClassRecord, Records
from hycal.state.samples import rows_beyond
from hycal.validation import Floats

ONE_IN = 50  # samples may have changed since something was fitted to all of them
_FEWEST = 1000  # samples of a model that keeps anything


def is_due(changed: int, samples: int, one_in: int = ONE_IN) -> bool:
    """Whether what was fitted to all samples is fitted anew, once `changed` of now `samples` samples changed.

    >>> is_due(20, 1000), is_due(21, 1000), is_due(1, 999)
    (False, True, True)
    """
    return samples < _FEWEST or one_in * changed > samples


@dataclass(frozen=True, eq=False)
class ChangedClass:
    """A class whose record changed; `old` or `new` is None if it is new or gone. `column` is that in the new table."""

    old: ClassRecord | None
    new: ClassRecord | None
    column: int | None

    @cached_property
    def added(self) -> Floats:
        """The samples that only `new` has."""
        return _rest(self.new, self.old)

    @cached_property
    def removed(self) -> Floats:
        """The samples that only `old` has."""
        return _rest(self.old, self.new)

    @property
    def samples(self) -> int:
        """How many samples were added or removed."""
        return len(self.added) + len(self.removed)


@dataclass(frozen=True, eq=False)
class Changes:
    """The difference of two tables."""

    before: Records
    after: Records
    # (C,): column of each class in the table before; -1 for classes that changed or are new.
    source: npt.NDArray[np.intp]
    gone: npt.NDArray[np.intp]  # columns of the table before whose classes changed or are gone

    @classmethod
    def between(cls, before: Records, after: Records) -> Changes:
        """Compare two tables."""
        if before.labels == after.labels:
            pairs = zip(before.ordered, after.ordered, strict=True)
            changed = np.array([column for column, (old, new) in enumerate(pairs) if old is not new], dtype=np.intp)
            source = np.arange(len(after.ordered))
            source[changed] = -1
            return cls(before, after, source, changed)
        column_of = {id(record): column for column, record in enumerate(before.ordered)}
        source = np.array([column_of.pop(id(record), -1) for record in after.ordered], dtype=np.intp)
        return cls(before, after, source, np.array(sorted(column_of.values()), dtype=np.intp))

    @cached_property
    def fresh(self) -> npt.NDArray[np.intp]:
        """Columns of the classes that changed or are new."""
        return np.flatnonzero(self.source < 0)

    @cached_property
    def classes(self) -> tuple[ChangedClass, ...]:
        """Every class that changed, is new or is gone."""
        left = {self.before.labels[column]: self.before.ordered[column] for column in self.gone.tolist()}
        found = [
            ChangedClass(left.pop(self.after.labels[column], None), self.after.ordered[column], column)
            for column in self.fresh.tolist()
        ]
        return (*found, *(ChangedClass(record, None, None) for record in left.values()))

    @cached_property
    def samples(self) -> int:
        """How many samples were added or removed."""
        return sum(one.samples for one in self.classes)

    @cached_property
    def fewest(self) -> int:
        """The fewest samples that a class which changed had or has: 0 where one is new or gone."""
        records = (record for one in self.classes for record in (one.old, one.new))
        return min((0 if record is None else record.count for record in records), default=int(self.after.counts.min()))

    @cached_property
    def moves(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The old column of each class, (C,), -1 if its label is new; and the new column of each old one and of -1."""
        was = self.source.copy()
        for one in self.classes:
            if one.old is not None and one.column is not None:
                was[one.column] = self.before.column_of[self.after.labels[one.column]]
        now = np.full(len(self.before.ordered) + 1, -1)
        now[was[was >= 0]] = np.flatnonzero(was >= 0)
        return was, now

    @property
    def few(self) -> bool:
        """Whether the samples can be compared quickly: most classes are the same."""
        return 4 * (len(self.gone) + len(self.fresh)) <= len(self.source)

    @cached_property
    def same_columns(self) -> bool:
        """Whether every class has the column it had."""
        return self.before.labels == self.after.labels

    def carried(self, rows: npt.NDArray[Any], fresh: Sequence[Any] | npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return an array of one row for each class, from that of the table before and the rows of `self.fresh`."""
        found = rows.copy() if self.same_columns else rows[self.source]
        if len(self.fresh):
            found[self.fresh] = fresh
        return found


def _rest(one: ClassRecord | None, other: ClassRecord | None) -> Floats:
    """Return the samples of `one` that `other` does not have, as multisets."""
    if one is None:
        assert other is not None
        return other.samples.rows[:0]
    if other is None or not other.count:
        return one.samples.rows
    return rows_beyond(one.samples.rows, other.samples.rows)
