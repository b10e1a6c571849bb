"""The likelihood of held-out samples near the fitted temperature T, so that T follows when a few of them change.

A change of samples takes some out of those that are held out, and puts others in. Only these are scored again, each by
the model without it. The fit minimises L(t) = strength/2 (t - log T0)^2 - sum_i w_i l_i(t) with t = log T, so that one
Newton step from the old t leads to the new one, up to the second order of the step. The scores of the other samples
stay as they were. That holds as long as all scores keep their scale, which the median margin of sixteen samples tells;
it is looked at whenever one sample in 1,000 has changed, or a class of few. T is fitted anew where a step of t, or the
change of scale, could move a probability by more than 0.02. A step h moves a probability p of C classes by
h p sum_j p_j m_j, with p_j and m_j the probabilities and margins of the others: at most by h (log(C - 1)/4 + 0.224).

    symbol   field        shape    meaning (n held-out samples)
    l_i      values       (n,)     log likelihood of the class of a sample, at t
             slopes       (n,)     its first derivative
             curvatures   (n,)     its second derivative
    w_i                            (K - 1)/K for a sample of a class of K
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.algebra.softmax import probabilities
from hycal.state.changes import Changes
from hycal.state.records import Records
from hycal.state.selection import Selection, spread
from hycal.uncertainty.leave_one_out import HeldOutScores, ScoringMethod, scores_without
from hycal.validation import Doubles, Floats, Label

_FARTHEST = 0.02  # that a step may move a probability
_MOST_NEW = 8  # samples that are scored again
_LEAST = 1e-300  # probability
LEAST_MARGIN = 1e-9
_ROWS_AT_ONCE = 50  # of which all scores are in memory
_PROBES = 16  # samples whose margins are watched
_WATCHED_AFTER = 1000  # margins are looked at again once one sample in so many has changed
_FEW = 4  # samples of a class: where a class of fewer changes, or is new or gone, they are looked at too


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Which samples are held out: the label, the bytes and the number of samples of the class of each, (n,).

    `most` is how many may be, `each` how many of a class; `last` is the largest first row of a class that is chosen
    where not all classes are, else None.
    """

    labels: npt.NDArray[np.object_]
    rows: npt.NDArray[np.object_]
    counts: npt.NDArray[np.int64]
    most: int
    each: int
    last: bytes | None

    @classmethod
    def of(cls, samples: Selection, records: Records, most: int) -> HeldOut:
        """Return the same of a selection by `spread`."""
        labels, rows = np.empty(len(samples.own), object), np.empty(len(samples.own), object)
        labels[:] = [records.labels[column] for column in samples.own.tolist()]
        rows[:] = [row.tobytes() for row in samples.X]
        several = int(np.count_nonzero(records.counts > 1))
        last = max(rows.tolist()) if several > most else None
        return cls(labels, rows, samples.counts, most, max(most // max(several, 1), 1), last)

    def after(self, changes: Changes) -> tuple[HeldOut, npt.NDArray[np.intp]]:
        """Return which are held out after a change, and the old place of each, -1 for those that were not."""
        found = self._followed(changes)
        if found is not None:
            return found
        records = changes.after
        now = HeldOut.of(spread(records, np.arange(len(records.counts)), self.most), records, self.most)
        known = {key: place for place, key in enumerate(zip(self.labels, self.rows, strict=True))}
        keys = zip(now.labels, now.rows, strict=True)
        return now, np.array([known.get(key, -1) for key in keys], dtype=np.intp)

    def _followed(self, changes: Changes) -> tuple[HeldOut, npt.NDArray[np.intp]] | None:
        """Return the same by looking at the classes that changed alone; None if others may be chosen in their place."""
        several = int(np.count_nonzero(changes.after.counts > 1))
        whole = several <= self.most
        each = max(self.most // max(several, 1), 1)
        if not changes.same_columns or each != self.each or whole != (self.last is None):
            return None
        kept, fresh = np.ones(len(self.labels), np.bool_), list[tuple[Label, bytes, int, int]]()
        for one in changes.classes:
            assert one.new is not None and one.column is not None  # columns are the same
            label = changes.after.labels[one.column]
            own = np.flatnonzero(self.labels == label)
            rows = [row.tobytes() for row in one.new.samples.rows[:each]] if one.new.count > 1 else []
            if self.last is not None and (not rows or rows[0] > self.last) != (not len(own)):
                return None
            kept[own] = False
            if self.last is None or len(own):
                old = {self.rows[place]: int(place) for place in own}
                fresh += [(label, row, one.new.count, old.get(row, -1)) for row in rows]
        labels, more, counts, places = zip(*fresh, strict=True) if fresh else ((), (), (), ())
        now = replace(
            self,
            labels=np.append(self.labels[kept], np.array(labels, object)),
            rows=np.append(self.rows[kept], np.array(more, object)),
            counts=np.append(self.counts[kept], np.array(counts, np.int64)),
        )
        return now, np.append(np.flatnonzero(kept), np.array(places, np.intp))

    def sample(self, place: int, records: Records) -> Selection:
        """Return one of them; its position among all samples is not known."""
        X, column = np.frombuffer(self.rows[place], np.float32)[None], records.column_of[self.labels[place]]
        return Selection(np.array([-1]), X, np.array([column]), self.counts[place : place + 1])


@dataclass(frozen=True, eq=False)
class Likelihood:
    """The likelihood of held-out samples near T. The table above describes the arrays.

    `strength` is the precision of log T around log T0, `centre` is T0; `margins` are those of the `probe` at the fit,
    and `unwatched` is how many samples changed since they were looked at.
    """

    held_out: HeldOut
    strength: float
    centre: float
    temperature: float
    values: Doubles
    slopes: Doubles
    curvatures: Doubles
    probe: Floats
    margins: Doubles
    unwatched: int = 0

    @classmethod
    def of(
        cls,
        found: HeldOutScores,
        held_out: HeldOut,
        temperature: float,
        prior: tuple[float, float],
        margins: Callable[[Floats], Doubles],
    ) -> Likelihood:
        """Return the likelihood of held-out scores at the fitted temperature.

        `prior` has the strength and T0; `margins` are those of samples under the model.
        """
        samples = found.samples
        probe = samples.X[:: max(len(samples.X) // _PROBES, 1)][:_PROBES]
        parts = found.of_own(lambda scores, own: _derivatives(scores, own, temperature))
        values, slopes, curvatures = parts
        return cls(held_out, *prior, temperature, values, slopes, curvatures, probe, margins(probe))

    def after(self, method: ScoringMethod, derived: Any, changes: Changes) -> Likelihood | None:
        """Return the likelihood at the temperature after a change; None if that has to be fitted anew."""
        if not len(self.values):
            return None
        unwatched, longest = self.unwatched + changes.samples, longest_step(len(changes.after.counts))
        if changes.fewest < _FEW or _WATCHED_AFTER * unwatched > int(changes.after.counts.sum()):
            scale, unwatched = score_margins(method, derived, self.probe) / self.margins, 0
            if abs(float(np.log(np.median(scale)))) > longest:
                return None
        now, source = self.held_out.after(changes)
        fresh = np.flatnonzero(source < 0)
        if not len(source) or len(fresh) > _MOST_NEW:
            return None
        parts = np.stack([self.values, self.slopes, self.curvatures])[:, source]
        for place in fresh.tolist():
            one = now.sample(place, changes.after)
            scores = scores_without(method, changes.after, one, derived)[None]
            parts[:, place] = np.ravel(_derivatives(scores, (one.each, one.own), self.temperature))
        weights = (now.counts - 1.0) / now.counts
        slope = self.strength * float(np.log(self.temperature / self.centre)) - float(weights @ parts[1])
        step = -slope / max(self.strength - float(weights @ parts[2]), self.strength)
        if abs(step) > longest:
            return None
        values, slopes = _moved(parts, step)
        temperature = self.temperature * float(np.exp(step))
        moved = {"values": values, "slopes": slopes, "curvatures": parts[2]}
        return replace(self, held_out=now, temperature=temperature, unwatched=unwatched, **moved)

    def chances(self, temperatures: Sequence[tuple[float, float]], floor: float, classes: int) -> Doubles:
        """Return the probabilities that the samples give to their own class, averaged over temperatures, sorted."""
        parts, chances = np.stack([self.values, self.slopes, self.curvatures]), np.zeros(len(self.values))
        for temperature, weight in temperatures:
            values = _moved(parts, float(np.log(temperature / self.temperature)))[0]
            chances += weight * np.exp(np.minimum(values, 0.0))
        return np.sort((1.0 - floor) * chances + floor / classes)


def longest_step(classes: int) -> float:
    """Return the step of log T that moves no probability by more than 0.02.

    >>> round(longest_step(2), 3), round(longest_step(1000), 3)
    (0.089, 0.01)
    """
    return _FARTHEST / (0.25 * float(np.log(max(classes - 1, 1))) + 0.224)


def _moved(parts: Doubles, step: float) -> tuple[Doubles, Doubles]:
    """Return l and dl/dt after a step of t."""
    values, slopes, curvatures = parts
    return values + step * slopes + 0.5 * step**2 * curvatures, slopes + step * curvatures


def score_margins(method: ScoringMethod, derived: Any, X: Floats) -> Doubles:
    """Return the best minus the second score of each row, (n,), at least 1e-9."""
    found = []
    for start in range(0, max(len(X), 1), _ROWS_AT_ONCE):
        scores = method.score_rows(derived, X[start : start + _ROWS_AT_ONCE], None)
        found.append(np.partition(scores, -2, axis=1)[:, -2:].astype(np.float64))
    best = np.concatenate(found)
    return np.maximum(best[:, 1] - best[:, 0], LEAST_MARGIN)


def _derivatives(
    scores: npt.NDArray[Any], own: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]], temperature: float
) -> Doubles:
    """Return l, dl/dt and d2l/dt2 of each row of scores, (3, n); `own` are the entries of the right classes.

    With u = s/T and p = softmax(u): l' = E_p u - u_own, and l'' = u_own - E_p u - Var_p u.
    """
    u = np.where(
        np.isfinite(scores), scores, scores.min(axis=1, where=np.isfinite(scores), initial=np.inf, keepdims=True)
    )
    u = (u - u.max(axis=1, keepdims=True)) / temperature
    p = probabilities(np.where(np.isfinite(scores), u, -np.inf))
    mean = np.einsum("nc,nc->n", p, u)
    variance = np.einsum("nc,nc->n", p, u**2) - mean**2
    return np.stack([np.log(np.maximum(p[own], _LEAST)), mean - u[own], u[own] - mean - variance])
