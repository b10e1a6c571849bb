"""Checks of what a model file claims: a claim that does not hold is a `ModelFileError` that says what was expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.errors import ModelFileError
from hycal.validation import Floats, view_slices

_UNIT_TOLERANCE = 1e-3


def expect(condition: bool, expected: str) -> None:
    """Raise unless the condition holds."""
    if not condition:
        raise ModelFileError(f"The model file is malformed: expected {expected}. Restore it from a copy.")


def is_list_of(value: Any, kind: type, length: int) -> bool:
    """Whether a value is a list of so many items of a kind."""
    return isinstance(value, list) and len(value) == length and all(type(item) is kind for item in value)


def unit_matrix(
    array: npt.NDArray[Any] | None, name: str, *, width: int | None = None, views: Sequence[int] | None = None
) -> Floats:
    """Return an array of a file that must be a matrix of finite unit rows, of this width if one is given.

    With views, each part of a row must be a unit vector or zeros, and one part at least a unit vector.
    """
    expect(array is not None and array.dtype == np.float32 and array.ndim == 2, f"a float32 matrix {name!r}")
    assert array is not None
    expect(width in (None, array.shape[1]), f"{name!r} to be {width} numbers wide")
    expect(views is None or sum(views) == array.shape[1], f"{name!r} to be as wide as the views {views}")
    parts = [array] if views is None else [array[:, part] for part in view_slices(views)]
    lengths = np.stack([np.einsum("nd,nd->n", part, part) for part in parts])
    unit = np.abs(lengths - 1.0) <= _UNIT_TOLERANCE
    expect(bool(np.all(unit | (lengths == 0.0)) and np.all(unit.any(axis=0))), f"finite unit rows in {name!r}")
    return array


def integers(tensors: Mapping[str, npt.NDArray[Any]], name: str, dtype: Any = np.int64) -> npt.NDArray[np.int64]:
    """Return a vector of a file that must be of this type of whole numbers."""
    array = tensors.get(name)
    expect(
        array is not None and array.dtype == dtype and array.ndim == 1,
        f"a vector {name!r} of {dtype.__name__}",
    )
    assert array is not None
    return array.astype(np.int64)
