"""Distances in a pile of embeddings, and an order of its rows that does not depend on how they came."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hycal.validation import Floats

NEAR = 0.05  # distance of near-duplicates, as a share of the mean distance; hardly any two other images are nearer
_COPY = 1e-5  # distance of copies: rounding alone


def canonical_order(rows: Floats) -> npt.NDArray[np.intp]:
    """Return an order of the rows that depends on their content alone; equal rows stay in their order."""
    return np.lexsort(rows[:, : min(8, rows.shape[1])].T[::-1])


def mean_distance(rows: Floats) -> float:
    """Return the mean distance 1 - x.y of two unit rows, and a little more than nothing for equal rows."""
    mean = rows.mean(axis=0, dtype=np.float64)
    return max(1.0 - float(mean @ mean), _COPY)


def near_distance(rows: Floats) -> float:
    """Return the distance below which two rows are near-duplicates."""
    return max(NEAR * mean_distance(rows), _COPY)
