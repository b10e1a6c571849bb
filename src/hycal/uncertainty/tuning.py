"""Parameters of a method from the likelihood of its own samples, left out one by one.

One parameter of the method's `tuning_grid` after the other, each to the value under which held-out samples are most
likely at their best temperature. Only learned samples are seen. Where a method has a closed form for held-out scores, a
value costs one derivation and one such form; where values share a kernel matrix, one Cholesky factor of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.base import clone

from hycal.errors import HyCalError
from hycal.state.records import Records
from hycal.state.selection import Selection, spread_rows
from hycal.uncertainty.leave_one_out import held_out_by
from hycal.uncertainty.temperature import best_temperature
from hycal.validation import Doubles

_HELD_OUT = 400  # samples; about as many of each class
_NO_GAIN = 1e-9  # nats a sample: rounding


def chosen(method: Any, records: Records) -> dict[str, Any]:
    """Return the parameters of `method` that make its held-out samples most likely.

    A parameter keeps its value where no other is better, as one that has no part in the scores.
    """
    samples = Selection.of(records, spread_rows(records, np.arange(len(records.counts)), _HELD_OUT))
    if not len(samples.rows) or len(records.counts) < 2:
        raise HyCalError(
            "Tuning holds samples out, which takes two classes and a second sample of one. Learn more images first."
        )
    parameters: dict[str, Any] = {}
    for name, values in method.tuning_grid.items():
        scores = held_out_by(clone(method).set_params(**parameters), records, samples, name, values)
        found = np.array([_likelihood(each, samples) for each in scores])
        best, present = int(np.nanargmax(found)), getattr(method, name)
        if present not in values or found[best] > found[values.index(present)] + _NO_GAIN:
            parameters[name] = values[best]
    return parameters


def _likelihood(scores: Doubles, samples: Selection) -> float:
    """Return the mean log probability of held-out samples at the temperature that is best for it."""
    chances = log_softmax(scores / best_temperature(scores, samples.own), axis=1)
    return float(np.mean(chances[samples.each, samples.own]))
