"""Domain Gravity: how often images of one domain are classified into another, for any fitted model, and why.

`bench` and `commands` may import it; it imports `classifiers`, `base`, `state` and below.
It never reads images or files, and never changes the model that it measures.

Examples
--------
>>> from hycal.gravity import CLAIMS
>>> all(sign in (-1, 1) for sign in CLAIMS.values())
True
"""

from hycal.gravity.flow import DomainFlow, Drift
from hycal.gravity.measure import CLAIMS, Gravity, domain_flow, measure, measure_calibration, pooled, uncalibrated
from hycal.gravity.statistics import Relation, Variety, relate, variety

__all__ = [
    "CLAIMS",
    "DomainFlow",
    "Drift",
    "Gravity",
    "Relation",
    "Variety",
    "domain_flow",
    "measure",
    "measure_calibration",
    "pooled",
    "relate",
    "uncalibrated",
    "variety",
]
