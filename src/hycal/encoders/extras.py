"""Optional packages: imported when they are needed, with an error that says how to install them."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from hycal.errors import HyCalError

EXTRAS = {
    "clip": ("onnx", "tokenizers", "huggingface_hub"),
    "torch": ("torch", "open_clip", "transformers"),
}


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


def missing_packages() -> dict[str, list[str]]:
    """Return, for each extra that an encoder may need, the packages that are not installed."""
    return {
        extra: [name for name in names if importlib.util.find_spec(name) is None] for extra, names in EXTRAS.items()
    }


def _load(module: str, why: str, advice: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except (ImportError, RuntimeError, OSError) as error:  # the last two: compiled parts of different builds
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{why} needs the package {package!r}, which cannot be imported ({error}). {advice}"
        ) from None
