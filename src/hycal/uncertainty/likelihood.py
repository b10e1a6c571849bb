"""The likelihood of held-out samples near the fitted temperature T, so that T follows when a few of them change.

A change of samples takes some out of those that are held out, and puts others in. Only these are scored again, each by
the model without it. The fit minimises L(t) = strength/2 (t - log T0)^2 - sum_i w_i l_i(t) with t = log T, so that one
Newton step from the old t leads to the new one, up to the second order of the step. A longer step than 0.05 is not
taken: T is fitted anew. The scores of the other samples stay as they were. That holds as long as all scores keep their
scale: T is fitted anew, too, once the median margin of sixteen samples has changed by 5%.

    symbol   field        shape    meaning (n held-out samples)
    l_i      values       (n,)     log likelihood of the class of a sample, at t
             slopes       (n,)     its first derivative
             curvatures   (n,)     its second derivative
    w_i                            (K - 1)/K for a sample of a class of K
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.algebra.softmax import probabilities
from hycal.state.records import Records
from hycal.state.selection import Selection, spread
from hycal.uncertainty.leave_one_out import HeldOutScores, ScoringMethod, scores_without
from hycal.validation import Doubles, Floats

LONGEST = 0.05  # step of log T
_MOST_NEW = 8  # samples that are scored again
_LEAST = 1e-300  # probability
LEAST_MARGIN = 1e-9
_PROBES = 16  # samples whose margins are watched

Key = tuple[Any, bytes]


@dataclass(frozen=True, eq=False)
class Likelihood:
    """The held-out samples by label and bytes, and their likelihood near T. The table above describes the arrays.

    `most` is how many samples are held out at most, `strength` the precision of log T around log T0, `centre`.
    """

    keys: tuple[Key, ...]
    most: int
    strength: float
    centre: float
    temperature: float
    values: Doubles
    slopes: Doubles
    curvatures: Doubles
    probe: Floats
    margins: Doubles

    @classmethod
    def of(
        cls,
        found: HeldOutScores,
        records: Records,
        most: int,
        temperature: float,
        prior: tuple[float, float],
        margins: Callable[[Floats], Doubles],
    ) -> Likelihood:
        """Return the likelihood of held-out scores at the fitted temperature.

        `prior` has the strength and T0; `margins` are those of samples under the model.
        """
        samples = found.samples
        probe = samples.X[:: max(len(samples.X) // _PROBES, 1)][:_PROBES]
        parts = _derivatives(found.scores, samples.own, temperature)
        return cls(_keys(samples, records), most, *prior, temperature, *parts, probe, margins(probe))

    def after(self, method: ScoringMethod, derived: Any, records: Records) -> Likelihood | None:
        """Return the likelihood of other records at their temperature; None if that has to be fitted anew."""
        scale = score_margins(method, derived, self.probe) / self.margins
        if abs(float(np.log(np.median(scale)))) > LONGEST:
            return None
        samples = spread(records, np.arange(len(records.counts)), self.most)
        keys, known = _keys(samples, records), {key: place for place, key in enumerate(self.keys)}
        source = np.array([known.get(key, -1) for key in keys], dtype=np.intp)
        fresh = np.flatnonzero(source < 0)
        if not len(keys) or len(fresh) > _MOST_NEW:
            return None
        parts = np.stack([self.values, self.slopes, self.curvatures])[:, source]
        for place in fresh.tolist():
            one = samples.at(np.array([place]))
            scores = scores_without(method, records, one, derived)[None]
            parts[:, place] = np.ravel(_derivatives(scores, one.own, self.temperature))
        weights = (samples.counts - 1.0) / samples.counts
        slope = self.strength * float(np.log(self.temperature / self.centre)) - float(weights @ parts[1])
        step = -slope / max(self.strength - float(weights @ parts[2]), self.strength)
        if abs(step) > LONGEST:
            return None
        moved = _moved(parts, step)
        temperature = self.temperature * float(np.exp(step))
        return replace(self, keys=keys, temperature=temperature, values=moved[0], slopes=moved[1], curvatures=parts[2])

    def chances(self, temperature: float, floor: float, classes: int) -> Doubles:
        """Return the probabilities that the samples give to their own class at another temperature, sorted."""
        parts = np.stack([self.values, self.slopes, self.curvatures])
        values = np.minimum(_moved(parts, float(np.log(temperature / self.temperature)))[0], 0.0)
        return np.sort((1.0 - floor) * np.exp(values) + floor / classes)


def _moved(parts: Doubles, step: float) -> tuple[Doubles, Doubles]:
    """Return l and dl/dt after a step of t."""
    values, slopes, curvatures = parts
    return values + step * slopes + 0.5 * step**2 * curvatures, slopes + step * curvatures


def score_margins(method: ScoringMethod, derived: Any, X: Floats) -> Doubles:
    """Return the best minus the second score of each row, (n,), at least 1e-9."""
    best = np.partition(method.score_rows(derived, X, None), -2, axis=1)[:, -2:].astype(np.float64)
    return np.maximum(best[:, 1] - best[:, 0], LEAST_MARGIN)


def _keys(samples: Selection, records: Records) -> tuple[Key, ...]:
    rows = zip(samples.X, samples.own.tolist(), strict=True)
    return tuple((records.labels[column], row.tobytes()) for row, column in rows)


def _derivatives(
    scores: npt.NDArray[Any], own: npt.NDArray[np.intp], temperature: float
) -> tuple[Doubles, Doubles, Doubles]:
    """Return l, dl/dt and d2l/dt2 of each row of scores, (n,) each.

    With u = s/T and p = softmax(u): l' = E_p u - u_own, and l'' = u_own - E_p u - Var_p u.
    """
    each = np.arange(len(scores))
    u = np.where(
        np.isfinite(scores), scores, scores.min(axis=1, where=np.isfinite(scores), initial=np.inf, keepdims=True)
    )
    u = (u - u.max(axis=1, keepdims=True)) / temperature
    p = probabilities(np.where(np.isfinite(scores), u, -np.inf))
    mean = np.einsum("nc,nc->n", p, u)
    variance = np.einsum("nc,nc->n", p, u**2) - mean**2
    value = np.log(np.maximum(p[each, own], _LEAST))
    return value, mean - u[each, own], u[each, own] - mean - variance
