"""Optional packages: imported when they are needed, with an error that says how to install them."""

from __future__ import annotations

import importlib
from types import ModuleType

from hycal.errors import HyCalError


class MissingExtraError(HyCalError):
    """A package cannot be imported; the message says how to install it."""


def load_extra(module: str, *, extra: str, why: str) -> ModuleType:
    """Import `module` of an extra of hycal.

    Parameters
    ----------
    module : str
        Name of the module to import.
    extra : str
        The extra of hycal that installs it.
    why : str
        What needs the module; it begins the message of the error.
    """
    return _load(module, why, f"Install it: pip install 'hycal[{extra}]'.")


def load_package(module: str, *, why: str) -> ModuleType:
    """Import `module`, a dependency of hycal that some systems cannot load; parameters as for `load_extra`."""
    return _load(module, why, f"It comes with hycal; install it again: pip install --force-reinstall {module}.")


def _load(module: str, why: str, advice: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except (ImportError, RuntimeError, OSError) as error:  # the last two: compiled parts of different builds
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{why} needs the package {package!r}, which cannot be imported ({error}). {advice}"
        ) from None
