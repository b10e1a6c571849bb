"""Parameters of a method, chosen by the leave-one-out likelihood of its own samples.

The parameters of the method's `tuning_grid` are set one after the other, each to the value under which held-out samples
are most likely at their best temperature. Only learned samples are used. A value costs one derivation and the closed
form of the held-out scores; where values share a kernel matrix, it costs one Cholesky factorisation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hycal.algebra.softmax import log_softmax
from hycal.errors import HyCalError
from hycal.state.records import Records
from hycal.state.selection import Selection, spread
from hycal.uncertainty.leave_one_out import score_held_out_by_value
from hycal.uncertainty.temperature import best_temperature
from hycal.validation import Doubles

_HELD_OUT = 400  # samples, spread evenly over classes
_NO_GAIN = 1e-9  # nats per sample; a smaller gain is rounding


def choose_parameters(method: Any, records: Records) -> dict[str, Any]:
    """Return the parameters of `method` that make its held-out samples most likely.

    A parameter whose present value is as good as any other is left out, and so keeps its value.
    """
    samples = Selection.of(records, spread(records, np.arange(len(records.counts)), _HELD_OUT).rows)
    if not len(samples.rows) or len(records.counts) < 2:
        raise HyCalError(
            "Tuning holds samples out, which takes two classes and a second sample of one. Learn more images first."
        )
    parameters: dict[str, Any] = {}
    for name, values in method.tuning_grid.items():
        scores = score_held_out_by_value(method.with_parameters(**parameters).scorer, records, samples, name, values)
        found = np.array([_likelihood(each, samples) for each in scores])
        best, present = int(np.nanargmax(found)), getattr(method, name)
        if present not in values or found[best] > found[values.index(present)] + _NO_GAIN:
            parameters[name] = values[best]
    return parameters


def _likelihood(scores: Doubles, samples: Selection) -> float:
    """Return the mean log probability of held-out samples at their best temperature."""
    chances = log_softmax(scores / best_temperature(scores, samples.own))
    return float(np.mean(chances[samples.each, samples.own]))
