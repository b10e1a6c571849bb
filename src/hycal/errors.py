"""The errors that hycal raises on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class HyCalError(ValueError):
    """Input that hycal cannot use: says what happened, what was expected and what to do.

    Whatever raised it left its object, or its file, as it was.

    Examples
    --------
    >>> import hycal
    >>> try:
    ...     hycal.NCM().fit([[1.0, 0.0]], ["a", "b"])
    ... except hycal.HyCalError as error:
    ...     print(isinstance(error, ValueError))
    True
    """


class ModelFileError(HyCalError):
    """A model file that is missing, malformed, or from a newer hycal.

    Examples
    --------
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
