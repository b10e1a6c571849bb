"""Probabilities, prediction sets and their thresholds from held-out scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.algebra.scores import probabilities
from hycal.state.records import Records
from hycal.state.selection import Selection, spread_rows
from hycal.uncertainty.leave_one_out import HeldOut, Method, has_closed_form, held_out
from hycal.uncertainty.temperature import best_temperature
from hycal.validation import Doubles

_HELD_OUT = 1000  # samples; their scores have a closed form
_DERIVED_AGAIN = 30  # samples; each has a model derived for it


@dataclass(frozen=True, eq=False)
class Calibration:
    """A temperature, and the probability that held-out samples give to their own class at that temperature.

    Attributes
    ----------
    temperature : float
        Scores are divided by it. 1 where no class has two samples, so that nothing can be held out.
    own : ndarray of shape (n,)
        Sorted; empty where nothing can be held out.
    """

    temperature: float
    own: Doubles

    @classmethod
    def of(cls, method: Method, derived: Any, records: Records, temperature: float | None = None) -> Calibration:
        """Fit the temperature, unless it is given, to the likelihood of held-out samples, some of each class."""
        found = _held_out(method, derived, records)
        scores, own = found.scores, found.samples.own
        if not len(own) or scores.shape[1] == 1:
            return cls(1.0, np.empty(0))
        if temperature is None:
            temperature = best_temperature(scores, own)
        return cls(temperature, np.sort(probabilities(scores, temperature)[found.samples.each, own]))

    def threshold(self, coverage: float) -> float:
        """Return the probability that a class needs to be in a prediction set; 0 where the samples are too few.

        Of n held-out samples and one query, all alike, the query's own class ranks anywhere with equal chance. So the
        k-th smallest with k = floor((n + 1)(1 - coverage)) is reached with a chance of `coverage` or more.
        """
        k = min(int(np.floor((len(self.own) + 1) * (1.0 - coverage) + 1e-9)), len(self.own))
        return float(self.own[k - 1]) if k else 0.0

    def sets(self, chances: Doubles, coverage: float) -> npt.NDArray[np.bool_]:
        """Return which classes are in the prediction set of each query, (n, C); the most probable always is."""
        chosen = chances >= self.threshold(coverage)
        chosen[np.arange(len(chances)), chances.argmax(axis=1)] = True
        return np.asarray(chosen)


def _held_out(method: Method, derived: Any, records: Records) -> HeldOut:
    everything, columns = Selection.of(records), np.arange(len(records.counts))
    rows = spread_rows(records, columns, _HELD_OUT)
    if len(rows) and not has_closed_form(method, derived, records, everything.at(rows[:1])):
        rows = spread_rows(records, columns, _DERIVED_AGAIN)
    return held_out(method, derived, records, everything.at(rows))
