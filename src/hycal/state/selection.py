"""A selection of learned samples: their rows and their classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hycal.state.records import Records
from hycal.state.samples import row_keys
from hycal.validation import Floats

_FIRST = 8  # numbers of a sample


@dataclass(frozen=True, eq=False)
class Selection:
    """Learned samples, selected by their position in `Records.stacked`."""

    rows: npt.NDArray[np.intp]  # (n,)
    X: Floats  # (n, d)
    own: npt.NDArray[np.intp]  # (n,): column of the class of each sample
    counts: npt.NDArray[np.int64]  # (n,): samples of that class, this one included

    @classmethod
    def of(cls, records: Records, rows: npt.NDArray[np.intp] | None = None) -> Selection:
        """Select the samples at `rows`; all of them by default."""
        stacked, own = records.stacked(), np.repeat(np.arange(len(records.counts)), records.counts)
        rows = np.arange(len(own)) if rows is None else rows
        return cls(rows, stacked[rows], own[rows], records.counts[own[rows]])

    @classmethod
    def joined(cls, parts: Sequence[Selection]) -> Selection:
        """Select the samples of all `parts`, one after the other."""
        names = "rows", "X", "own", "counts"
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def at(self, positions: npt.NDArray[np.intp]) -> Selection:
        """Select the samples at `positions` of this selection."""
        return Selection(self.rows[positions], self.X[positions], self.own[positions], self.counts[positions])

    @property
    def each(self) -> npt.NDArray[np.intp]:
        """0, 1, ...: (each, own) are the entries of a score matrix that belong to the samples' own classes."""
        return np.arange(len(self.rows))


def by_first_sample(records: Records, columns: list[int]) -> list[int]:
    """Return columns in the order of the bytes of the first sample of their classes: it does not depend on labels.

    A sealed class has its mean for that, in the half precision that a file may have. The first 8 numbers nearly always
    differ; comparing whole samples would copy one for every class.
    """

    def first_of(column: int) -> npt.NDArray[np.floating]:
        record = records.ordered[column]
        return record.samples.rows[0] if record.moments is None else record.moments.centre.astype(np.float16)

    first = np.stack([first_of(column)[:_FIRST] for column in columns])
    order = np.argsort(row_keys(first), kind="stable")
    if np.any(np.all(first[order[1:]] == first[order[:-1]], axis=1)):
        return sorted(columns, key=lambda column: first_of(column).tobytes())
    return np.array(columns)[order].tolist()


def spread(records: Records, columns: npt.NDArray[np.intp], most: int) -> Selection:
    """Return at most `most` samples of the classes at `columns`, spread evenly over those with two or more samples.

    The choice depends on the samples alone, not on labels or on the order of calls. The other samples are not touched.
    """
    counts, starts = records.counts, np.cumsum(records.counts) - records.counts
    several = [column for column in columns.tolist() if counts[column] > 1]
    if len(several) > most:
        several = by_first_sample(records, several)
    each = max(most // max(len(several), 1), 1)
    chosen = np.array(several[:most], dtype=np.intp)
    X = [records.ordered[column].samples.rows[:each] for column in chosen.tolist()]
    sizes = np.minimum(counts[chosen], each)
    own = np.repeat(chosen, sizes)
    within = np.arange(len(own)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.concatenate([np.empty((0, records.width), np.float32), *X])
    return Selection(starts[own] + within, rows, own, counts[own])
