"""Optional packages, imported when they are needed, with the extra that brings them."""

from __future__ import annotations

import importlib
from types import ModuleType

from hycal.errors import HyCalError


class MissingExtraError(HyCalError):
    """An optional package that is not installed: says which extra brings it."""


def load_extra(module: str, *, extra: str, why: str) -> ModuleType:
    """Import `module`, or say which extra of hycal installs it.

    Parameters
    ----------
    module : str
        Name of the module to import.
    extra : str
        The extra of hycal that has it.
    why : str
        What cannot be done without it, to begin the message.
    """
    try:
        return importlib.import_module(module)
    except (ImportError, RuntimeError, OSError) as error:  # the last two: compiled parts that do not fit together
        raise MissingExtraError(
            f"{why} needs the package {module.partition('.')[0]!r}, which cannot be imported ({error}). "
            f"Install it: pip install 'hycal[{extra}]'."
        ) from None
