"""Teach a classifier new image classes from a handful of examples, without retraining and without forgetting."""

from hycal._version import __version__
from hycal.classifiers import (
    GDA,
    KLDA,
    METHODS,
    NCM,
    SLDA,
    DualRAIL,
    FeCAM,
    HierarchicalHyCal,
    HyCal,
    PrimalRAIL,
    RanPAC,
    TipAdapter,
    ZeroShot,
)
from hycal.errors import HyCalError, ModelFileError
from hycal.loading import load

__all__ = [
    "GDA",
    "KLDA",
    "METHODS",
    "NCM",
    "SLDA",
    "DualRAIL",
    "FeCAM",
    "HierarchicalHyCal",
    "HyCal",
    "HyCalError",
    "ModelFileError",
    "PrimalRAIL",
    "RanPAC",
    "TipAdapter",
    "ZeroShot",
    "__version__",
    "load",
]
