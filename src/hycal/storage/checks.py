"""Checks of what a model file claims: a claim that does not hold is a `ModelFileError` that says what was expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.errors import ModelFileError
from hycal.validation import Floats

_UNIT_TOLERANCE = 1e-3


def expect(condition: bool, expected: str) -> None:
    """Raise unless the condition holds."""
    if not condition:
        raise ModelFileError(f"The model file is malformed: expected {expected}. Restore it from a copy.")


def is_list_of(value: Any, kind: type, length: int) -> bool:
    """Whether a value is a list of so many items of a kind."""
    return isinstance(value, list) and len(value) == length and all(type(item) is kind for item in value)


def unit_matrix(array: npt.NDArray[Any] | None, name: str, *, width: int | None = None) -> Floats:
    """Return an array of a file that must be a matrix of finite unit rows, of this width if one is given."""
    expect(array is not None and array.dtype == np.float32 and array.ndim == 2, f"a float32 matrix {name!r}")
    assert array is not None
    expect(width in (None, array.shape[1]), f"{name!r} to be {width} numbers wide")
    lengths = np.einsum("nd,nd->n", array, array)
    expect(bool(np.all(np.abs(lengths - 1.0) <= _UNIT_TOLERANCE)), f"finite unit rows in {name!r}")
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
