"""Teach a classifier new image classes from a handful of examples, without retraining and without forgetting."""

from typing import TYPE_CHECKING, Any

from hycal._version import __version__
from hycal.errors import HyCalError, ModelFileError

if TYPE_CHECKING:
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
    from hycal.project import load

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


def __getattr__(name: str) -> Any:
    """Import the classifiers at first use: they bring scikit-learn, and `hycal --help` should not wait for it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hycal import classifiers, project

    value = globals()[name] = getattr(project if name == "load" else classifiers, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
