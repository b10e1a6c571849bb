"""Whether a query of several views belongs to any learned class: the weighted mean of how well it fits in each view."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hycal.state.records import ClassRecord, Records
from hycal.state.samples import ClassSamples
from hycal.state.selection import Selection, spread
from hycal.state.snapshot import Snapshot
from hycal.uncertainty.leave_one_out import held_out_limit
from hycal.uncertainty.near_duplicates import duplicate_groups
from hycal.uncertainty.unknown import Familiarity, lowest_familiarity
from hycal.validation import Doubles, Floats
from hycal.views.models import ViewModels

_LEAST_SPREAD = 1e-9


@dataclass(frozen=True, eq=False)
class ViewFamiliarity:
    """How well queries fit the learned classes, in all views that they have."""

    parts: tuple[slice, ...]
    known: tuple[Familiarity, ...]  # of each view
    weights: Doubles  # (V,): those of the views in all domains; their sum is 1
    spread: float  # standard deviation of the weighted mean over held-out samples that have all views
    held_out: Doubles  # (n,): familiarity of these samples, sorted

    @classmethod
    def of(cls, models: ViewModels, *, most: float = 1.0) -> ViewFamiliarity:
        """Measure held-out samples in each view; near-duplicates, by all views together, count once.

        `most` is the largest share that covariances may have: 0 where only means are kept.

        A view that has texts and no samples measures nothing. One sample alone has no deviation: none is held out then.
        """
        records = _distinct(models.records.seen)
        weighed = zip(models.views, models.weights.shared, strict=True)
        views = [(view, weight) for view, weight in weighed if view is not None and view.table.counts.any()]
        parts, weights = tuple(view.part for view, _ in views), np.array([weight for _, weight in views])
        samples = spread(records, np.arange(len(records.counts)), held_out_limit(len(records.counts)))
        tables = [records.view(part) for part in parts]
        usable = np.flatnonzero(_in_every_view(records, tables, parts, samples))
        chosen = samples.at(usable if len(usable) > 1 else usable[:0])
        known, found = [], np.zeros(len(chosen.rows))
        for part, table, weight in zip(parts, tables, weights / weights.sum(), strict=True):
            places = np.cumsum(records.stacked()[:, part].any(axis=1)) - 1
            one, own = Familiarity.fitted(table.seen, Selection.of(table.seen, places[chosen.rows]), most=most)
            known.append(one)
            found += weight * own
        deviation = max(float(found.std(ddof=1)), _LEAST_SPREAD) if len(found) > 1 else 1.0
        return cls(parts, tuple(known), weights / weights.sum(), deviation, np.sort(found / deviation))

    def __call__(self, X: Floats) -> Doubles:
        """Return the familiarity of queries: 0 is that of a typical sample, -1 one standard deviation less."""
        has = np.stack([X[:, part].any(axis=1) for part in self.parts])
        found = np.zeros(len(X))
        for part, own, known, weight in zip(self.parts, has, self.known, self.weights, strict=True):
            if own.any():
                found[own] += weight * known(np.ascontiguousarray(X[own, part]))
        found /= np.maximum(self.weights @ has, _LEAST_SPREAD)
        familiarity: Doubles = found / np.where(has.sum(axis=0) > 1, self.spread, 1.0)
        return familiarity

    def threshold(self, error: float) -> float:
        """Return the familiarity below which a query is unknown, so that a share of `error` of the known ones is."""
        return lowest_familiarity(self.held_out, error)


def view_familiarity_of(snapshot: Snapshot) -> ViewFamiliarity:
    """Return the measure of how well queries fit the classes of a snapshot of several views."""
    return snapshot.once("familiarity", lambda: ViewFamiliarity.of(snapshot.value))


def _distinct(records: Records) -> Records:
    """Return the records with the first sample of each group of near-duplicates."""
    first = np.zeros(int(records.counts.sum()), np.bool_)
    first[np.unique(duplicate_groups(records), return_index=True)[1]] = True
    kept = np.split(first, np.cumsum(records.counts)[:-1])
    pairs = zip(records.labels, records.ordered, kept, strict=True)
    return Records({k: ClassRecord(ClassSamples(one.samples.rows[own]), one.domain, one.text) for k, one, own in pairs})


def _in_every_view(
    records: Records, tables: list[Records], parts: tuple[slice, ...], samples: Selection
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which samples have every view, in classes of two or more samples there."""
    usable = np.ones(len(samples.rows), np.bool_)
    for part, table in zip(parts, tables, strict=True):
        counts = np.array([table.by_label[k].count if k in table.by_label else 0 for k in records.labels])
        usable &= samples.X[:, part].any(axis=1) & (counts[samples.own] > 1)
    return usable
