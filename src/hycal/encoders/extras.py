"""Packages that are imported when they are needed, with how to install them where they are not there."""

from __future__ import annotations

import importlib
from types import ModuleType

from hycal.errors import HyCalError


class MissingExtraError(HyCalError):
    """A package that cannot be imported: says what installs it."""


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
    return _load(module, why, f"Install it: pip install 'hycal[{extra}]'.")


def load_package(module: str, *, why: str) -> ModuleType:
    """Import `module`, which hycal itself requires but a system may be unable to load; parameters as above."""
    return _load(module, why, f"It comes with hycal; install it again: pip install --force-reinstall {module}.")


def _load(module: str, why: str, advice: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except (ImportError, RuntimeError, OSError) as error:  # the last two: compiled parts that do not fit together
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{why} needs the package {package!r}, which cannot be imported ({error}). {advice}"
        ) from None
