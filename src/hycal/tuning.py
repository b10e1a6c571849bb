"""Parameters of a method from the likelihood of its own samples, left out one by one.

One parameter after the other, in the order listed, each to the value under which held-out samples are most likely at
their best temperature. Only learned samples are seen. Where a method has a closed form for held-out scores, a value
costs one derivation and one such form; values that the method cannot use are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.base import clone

from hycal.errors import HyCalError
from hycal.leave_one_out import Samples, held_out, spread_rows
from hycal.records import Records
from hycal.tempering import Pull, fit_weights

_HELD_OUT = 400  # samples; about as many of each class
_PULL = 1e-3  # nats

#: What is tried, by method and parameter.
VALUES: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "HyCal": {"reg": (1e-4, 1e-3, 1e-2, 3e-2, 1e-1), "alpha": (1, 5, 10, 20, 40), "beta": (1, 5, 10)},
    "HierarchicalHyCal": {"strength": (0.3, 0.5, 1.0, 2.0), "ridge": (0.2, 0.35, 0.5, 0.7)},
    "ZeroShot": {},
    "NCM": {"metric": ("cosine", "euclidean")},
    "SLDA": {"shrinkage": tuple(10.0**k for k in np.arange(-5, -0.9, 0.5))},
    "GDA": {"alpha": (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)},
    "FeCAM": {"alpha1": (0.3, 1.0, 3.0, 10.0, 30.0)},
    "RanPAC": {"ridge": tuple(10.0**k for k in range(7))},
    "KLDA": {"gamma": (0.03, 0.1, 0.3, 1.0), "reg": (1e-4, 1e-3, 1e-2, 1e-1)},
    "PrimalRAIL": {"ridge": (1e-3, 1e-2, 1e-1, 1.0)},
    "DualRAIL": {"gamma": (0.03, 0.1, 0.3, 1.0), "ridge": (1e-4, 1e-3, 1e-2, 1e-1)},
    "TipAdapter": {"beta": (1.0, 5.5, 20.0, 50.0), "alpha": (0.1, 0.3, 1.0, 3.0, 10.0)},
}


def chosen(method: Any, records: Records) -> dict[str, Any]:
    """Return the parameters of `method` that make its held-out samples most likely."""
    samples = Samples.of(records, spread_rows(records, np.arange(len(records.counts)), _HELD_OUT))
    if len(samples.rows) < 2 or len(records.counts) < 2:
        raise HyCalError(
            "Tuning holds samples out, and there are not two classes with two samples. Learn more images first."
        )
    parameters: dict[str, Any] = {}
    for name, values in VALUES.get(type(method).__name__, {}).items():
        found = [
            _likelihood(clone(method).set_params(**parameters, **{name: value}), records, samples) for value in values
        ]
        parameters[name] = values[int(np.argmax(found))]
    return parameters


def _likelihood(method: Any, records: Records, samples: Samples) -> float:
    """Return the mean log probability of held-out samples at the temperature that is best for it."""
    scores = held_out(method, method._derive(records, None), records, samples).scores
    scale = max(float(np.mean(scores.std(axis=1))), 1e-9)
    weight = float(fit_weights(scores[None], samples.own, Pull(np.array([1.0 / scale]), _PULL))[0])
    return float(np.mean(log_softmax(weight * scores, axis=1)[samples.each, samples.own]))
