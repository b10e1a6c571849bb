"""The compiled loops, where Numba is installed and the work is large enough to load them."""

from __future__ import annotations

import importlib
from functools import cache
from types import ModuleType

_MANY = 2**18  # numbers; loading Numba takes as long as NumPy needs for a hundred times as many


def compiled_loops(numbers: int) -> ModuleType | None:
    """Return `hycal.algebra.compiled` for work on so many numbers; None where NumPy has to do."""
    return _loaded() if numbers >= _MANY else None


@cache
def _loaded() -> ModuleType | None:
    try:
        return importlib.import_module("hycal.algebra.compiled")
    except (ImportError, RuntimeError, OSError):  # not installed, or no folder in which to keep the machine code
        return None
