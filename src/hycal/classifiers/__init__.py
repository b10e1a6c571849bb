"""The methods: one in each file, and everything about a method in its class.

`project`, `gravity`, `scale`, `testing`, `bench` and `commands` may import it.
A method never reads an image, and never knows which program uses it.
"""

from typing import TYPE_CHECKING, Any

from hycal.classifiers.registry import MethodRegistry

if TYPE_CHECKING:
    from hycal.classifiers.anacp import AnaCP
    from hycal.classifiers.ape import APE
    from hycal.classifiers.fecam import FeCAM
    from hycal.classifiers.gda import GDA
    from hycal.classifiers.hierarchical import HierarchicalHyCal
    from hycal.classifiers.hycal import HyCal
    from hycal.classifiers.klda import KLDA
    from hycal.classifiers.loranpac import LoRanPAC
    from hycal.classifiers.ncm import NCM
    from hycal.classifiers.proker import ProKeR
    from hycal.classifiers.rail import DualRAIL, PrimalRAIL
    from hycal.classifiers.ranpac import RanPAC
    from hycal.classifiers.slda import SLDA
    from hycal.classifiers.teen import TEEN
    from hycal.classifiers.tip_adapter import TipAdapter
    from hycal.classifiers.zero_shot import ZeroShot

_MODULES = {
    "HyCal": "hycal",
    "HierarchicalHyCal": "hierarchical",
    "ZeroShot": "zero_shot",
    "NCM": "ncm",
    "TEEN": "teen",
    "SLDA": "slda",
    "GDA": "gda",
    "FeCAM": "fecam",
    "RanPAC": "ranpac",
    "LoRanPAC": "loranpac",
    "KLDA": "klda",
    "AnaCP": "anacp",
    "PrimalRAIL": "rail",
    "DualRAIL": "rail",
    "TipAdapter": "tip_adapter",
    "ProKeR": "proker",
    "APE": "ape",
}
#: Every method by name, those of installed packages included. Laws, benchmark, command line and docs find them here.
METHODS = MethodRegistry({name: f"{__name__}.{module}" for name, module in _MODULES.items()})


def __getattr__(name: str) -> Any:
    """Import a method at first use: most bring SciPy, and the answer of another method should not wait for it."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return METHODS[name]


__all__ = [
    "APE",
    "GDA",
    "KLDA",
    "METHODS",
    "NCM",
    "SLDA",
    "TEEN",
    "AnaCP",
    "DualRAIL",
    "FeCAM",
    "HierarchicalHyCal",
    "HyCal",
    "LoRanPAC",
    "PrimalRAIL",
    "ProKeR",
    "RanPAC",
    "TipAdapter",
    "ZeroShot",
]
