"""Teach a classifier new image classes from a handful of examples, without retraining and without forgetting.

Examples
--------
>>> import hycal
>>> list(hycal.METHODS)[:2]
['HyCal', 'HierarchicalHyCal']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hycal._version import __version__ as __version__
from hycal.errors import HyCalError as HyCalError
from hycal.errors import ModelFileError as ModelFileError

if TYPE_CHECKING:
    from hycal.classifiers import *  # noqa: F403  the names of the methods stand there alone
    from hycal.pile.discovery import discover as discover
    from hycal.pile.suggestion import suggest as suggest
    from hycal.project import load as load


_FUNCTIONS = {
    "discover": "hycal.pile.discovery",
    "load": "hycal.project",
    "suggest": "hycal.pile.suggestion",
}


def __getattr__(name: str) -> Any:
    """Import the methods at first use: they bring scikit-learn, and `hycal --help` should not wait for it."""
    value: Any
    if name in _FUNCTIONS:
        value = getattr(import_module(_FUNCTIONS[name]), name)
    elif name == "__all__":
        methods = import_module("hycal.classifiers").__all__
        return sorted([*methods, *_FUNCTIONS, "HyCalError", "ModelFileError", "__version__"])
    elif name[0].isupper() and name in import_module("hycal.classifiers").__all__:
        value = getattr(import_module("hycal.classifiers"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
