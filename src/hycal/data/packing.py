"""Embeddings small enough to ship: float16, its two bytes apart, deflated.

The high bytes of half-precision unit rows (sign, exponent, two bits of mantissa) are much alike and deflate
well; the low bytes are noise. Kept interleaved, as numpy stores them, neither would shrink.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.errors import HyCalError
from hycal.storage.atomic import replacing
from hycal.storage.npz import load_arrays
from hycal.validation import Floats, unit_rows

Arrays = Mapping[str, npt.NDArray[Any]]


def pack(name: str, rows: npt.NDArray[np.floating[Any]]) -> dict[str, npt.NDArray[np.uint8]]:
    """Return `rows` as two named byte planes.

    Examples
    --------
    >>> planes = pack("x", np.eye(2, dtype=np.float32))
    >>> sorted(planes), unpack("x", planes).tolist()
    (['x_high', 'x_low'], [[1.0, 0.0], [0.0, 1.0]])
    """
    planes = np.ascontiguousarray(rows, dtype="<f2").view(np.uint8).reshape(*rows.shape, 2)
    return {f"{name}_low": planes[..., 0].copy(), f"{name}_high": planes[..., 1].copy()}


def unpack(name: str, arrays: Arrays) -> Floats:
    """Return the rows that `pack` took apart, as unit float32 rows."""
    low, high = arrays[f"{name}_low"], arrays[f"{name}_high"]
    rows: npt.NDArray[np.float16] = np.stack([low, high], axis=-1).view("<f2")[..., 0]
    return unit_rows(rows)


def write_packed(path: Path, arrays: Arrays) -> None:
    """Write `arrays` to a compressed .npz."""
    contents: dict[str, Any] = dict(arrays)
    with replacing(path) as file:
        np.savez_compressed(file, **contents)


def read_packed(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a .npz, or say what is wrong with it."""
    try:
        return load_arrays(path)
    except ValueError as error:
        raise HyCalError(f"{path.name} of the bundled data is damaged: {error}. Install hycal again.") from None
