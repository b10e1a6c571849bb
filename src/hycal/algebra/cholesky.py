"""Cholesky factors and their inverses, in blocks of rows: with NumPy alone, at the speed of matrix products.

LAPACK does the same through SciPy, whose import takes longer than an answer. Only blocks of 64 rows are factorised and
inverted by LAPACK here; the rest are products, during which other threads work.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hycal.validation import Doubles, Floats

Matrix = TypeVar("Matrix", Floats, Doubles)

_BLOCK = 64  # rows


def factorise(A: Matrix) -> Matrix:
    """Return L of a positive definite A = LL', in the memory of A.

    >>> factorise(np.array([[4.0, 2.0], [2.0, 10.0]]))
    array([[2., 0.],
           [1., 3.]])
    """
    for own, after in _blocks(A):
        below = A[own.start :, own]
        below -= A[own.start :, : own.start] @ A[own, : own.start].T
        A[own, own] = np.linalg.cholesky(A[own, own])
        A[after, own] = A[after, own] @ np.linalg.inv(A[own, own]).T
        A[own, after] = 0.0
    return A


def inverse_factor(L: Matrix) -> Matrix:
    """Return L^-1, lower triangular as L is."""
    inverse = np.zeros_like(L)
    for own, _ in _blocks(L):
        before = slice(0, own.start)
        inverse[own, own] = np.linalg.inv(L[own, own])
        inverse[own, before] = -inverse[own, own] @ (L[own, before] @ inverse[before, before])
    return inverse


def times_upper(X: npt.NDArray[Any], U: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return X U for an upper triangular U: a block of columns needs the columns of X up to its end alone.

    >>> times_upper(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [0.0, 5.0]]))
    array([[ 3., 14.]])
    """
    product = np.empty((len(X), len(U)), np.result_type(X, U))
    for own, _ in _blocks(U):
        np.matmul(X[:, : own.stop], U[: own.stop, own], out=product[:, own])
    return product


def _blocks(matrix: Any) -> Iterator[tuple[slice, slice]]:
    """Yield the rows of each block, and those after it."""
    for start in range(0, len(matrix), _BLOCK):
        end = min(start + _BLOCK, len(matrix))
        yield slice(start, end), slice(end, len(matrix))
