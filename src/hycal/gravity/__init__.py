"""Domain Gravity, measured: which domain takes whose images, for any fitted model."""

from hycal.gravity.drift import Drift
from hycal.gravity.entropy import Variety, variety
from hycal.gravity.flow import DomainFlow
from hycal.gravity.measure import CLAIMS, Gravity, domain_flow, measure, measure_calibration, pooled, uncalibrated
from hycal.gravity.relations import Relation, relate

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
