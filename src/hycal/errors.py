"""The errors that hycal raises on purpose, among them those for files and packages that the system does not give."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType


class HyCalError(ValueError):
    """Input that hycal cannot use: says what happened, what was expected and what to do.

    Whatever raised it left its object, or its file, as it was.

    >>> import hycal
    >>> try:
    ...     hycal.NCM().fit([[1.0, 0.0]], ["a", "b"])
    ... except hycal.HyCalError as error:
    ...     print(isinstance(error, ValueError))
    True
    """


class ModelFileError(HyCalError):
    """A model file that is missing, malformed, or from a newer hycal.

    >>> import hycal
    >>> try:
    ...     hycal.load("missing.safetensors")
    ... except hycal.ModelFileError as error:
    ...     print("missing.safetensors" in str(error))
    True
    """


class StorageError(HyCalError):
    """A file that the system does not let us write: no room, no permission. It is as it was."""


class ReadOnlyError(HyCalError):
    """A change to a model that was opened to be read only."""


class MovedOnError(HyCalError):
    """A change that was meant for a model which is not the newest any more."""


def did_you_mean(name: str, known: Mapping[str, str]) -> str:
    """Return the question for a misspelt name, "" if nothing is written like it; `known` has names by lower case.

    >>> did_you_mean("Hykal", {"hycal": "HyCal", "ncm": "NCM"})
    " Did you mean 'HyCal'?"
    """
    import difflib  # only errors need it

    near = difflib.get_close_matches(name.lower(), known, n=1)
    return f" Did you mean {known[near[0]]!r}?" if near else ""


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Say what the system refused while `path` was written."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{path} cannot be changed: {error.strerror or error}. Nothing was changed. Check that the disk has room "
            f"and that the folder {path.parent} may be written, then do it again."
        ) from None


class MissingExtraError(HyCalError):
    """A package cannot be imported; the message says how to install it."""


def load_extra(module: str, *, extra: str, why: str) -> ModuleType:
    """Import `module` of an extra of hycal.

    `extra` is the extra of hycal that installs it. `why` says what needs the module; it begins the message of the
    error.
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
