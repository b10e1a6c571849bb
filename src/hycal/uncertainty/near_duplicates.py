"""Near-duplicates among the learned samples of a class: bursts, crops, pictures of one and the same object.

Two samples of a class are near-duplicates if their distance 1 - x.y is below a fifth of what is usual within the
classes of their domain. Where every class is one burst, that says nothing: then they are if their distance is below
0.002 and a tenth of that between classes. A group is a sample and all that are near it and in no group yet, sample
after sample in their canonical order: a chain of small steps is not one group, so a class of thousands stays many. A
group is worth about one sample, so what is held out of a model must be held out together. A row of several views is
scaled to length one first, so that each of its views counts the same.

    symbol    shape   meaning (class c of K samples, in a domain of C_g classes)
    x         (K, d)  unit samples
    w_c       (C_g,)  mean distance of two samples of class c: 1 - (|sum x|^2 - K)/(K (K - 1))
    b         scalar  mean distance of two class means of the domain: 1 - mu_c.mu_c'
    near      scalar  max(median of w_c/5, min(b/10, 0.002)): what is nearer is a near-duplicate
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hycal.state.changes import Changes
from hycal.state.records import ClassRecord, Records
from hycal.state.samples import ClassSamples
from hycal.validation import Doubles, Floats

_NEAR = 0.2  # of the distance within classes; 0.01 to 0.5% of independent pairs of a class are nearer
_NEAR_BETWEEN = 0.1  # of the distance between classes
_COPY = 0.002  # the distance of two copies
_ROUNDING = 1e-6  # of a distance of equal rows
_AT_ONCE = 1024  # rows


def duplicate_groups(records: Records) -> npt.NDArray[np.intp]:
    """Return the group of each sample, (N,), class after class as in `Records.stacked`; groups count from 0."""
    groups, first = [], 0
    for record, near in zip(records.ordered, _near_distances(records), strict=True):
        own = groups_within(record.samples.rows, near)
        groups.append(own + first)
        first += int(own.max(initial=-1)) + 1
    return np.concatenate(groups)


@dataclass(frozen=True, eq=False)
class Distinct:
    """Records with one sample of each group of near-duplicates, and the distance of those in each domain."""

    records: Records
    near: Mapping[str, float]

    @classmethod
    def of(cls, records: Records) -> Distinct:
        """Choose the first sample of each group."""
        distances = _near_distances(records)
        near = dict(zip(records.domains.tolist(), distances.tolist(), strict=True))
        chosen = {
            label: _first_of_each(record, distance)
            for label, record, distance in zip(records.labels, records.ordered, distances, strict=True)
        }
        same = all(chosen[label] is record for label, record in records.by_label.items())
        return cls(records if same else Records(chosen, records.memo), near)

    def after(self, changes: Changes) -> Distinct | None:
        """Return the same after `changes` of all samples: distances stay; None if there is a new domain."""
        before, chosen = changes.before.labels, {}
        for label, record, source in zip(changes.after.labels, changes.after.ordered, changes.source, strict=True):
            if source >= 0 and before[source] in self.records.by_label:
                chosen[label] = self.records.by_label[before[source]]
            elif record.count and record.domain not in self.near:
                return None
            elif record.count:
                chosen[label] = _first_of_each(record, self.near[record.domain])
        return Distinct(Records(chosen, changes.after.memo), self.near)


def _first_of_each(record: ClassRecord, near: float) -> ClassRecord:
    """Return the record with one sample of each group; the same one if no two are near."""
    groups = groups_within(record.samples.rows, near)
    first = np.sort(np.unique(groups, return_index=True)[1])
    if len(first) == record.count:
        return record
    return ClassRecord(ClassSamples(record.samples.rows[first]), record.domain, record.text)


def _near_distances(records: Records) -> Doubles:
    """Return the distance below which two samples of each class are near-duplicates, (C,)."""
    sums = np.stack([_length_one(record.samples.rows).sum(axis=0, dtype=np.float64) for record in records.ordered])
    K = records.counts
    squares = np.einsum("cd,cd->c", sums, sums)
    within = np.where(K > 1, 1.0 - (squares - K) / np.maximum(K * (K - 1.0), 1.0), np.nan)
    near = np.zeros(len(K))
    for domain in np.unique(records.domains):
        own = np.flatnonzero((records.domains == domain) & (K > 0))
        found = within[own][K[own] > 1]
        means = sums[own] / K[own, None]
        n, total = len(own), means.sum(axis=0)
        between = 1.0 - (total @ total - np.sum(means**2)) / (n * (n - 1)) if n > 1 else 0.0
        usual = _NEAR * float(np.median(found)) if len(found) else 0.0
        near[own] = max(usual, min(_NEAR_BETWEEN * between, _COPY), _ROUNDING)
    return near


def _length_one(rows: Floats) -> Floats:
    """Return rows of several views scaled to length one; rows of one view as they are."""
    squares = np.einsum("kd,kd->k", rows, rows)
    return rows if squares.max(initial=1.0) < 1.5 else rows / np.sqrt(squares)[:, None]


def groups_within(rows: Floats, near: float) -> npt.NDArray[np.intp]:
    """Return the number of the group of each row, in order of the first row of each."""
    rows, groups, count = _length_one(rows), np.full(len(rows), -1, np.intp), 0
    for start in range(0, len(rows), _AT_ONCE):
        is_near = rows[start : start + _AT_ONCE] @ rows.T > 1.0 - near
        for row, neighbours in enumerate(is_near, start):
            if groups[row] < 0:
                neighbours[row] = True
                groups[neighbours & (groups < 0)] = count
                count += 1
    return groups
