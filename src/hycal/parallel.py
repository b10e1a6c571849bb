"""Query batches on all cores: one thread per chunk, one BLAS thread in each.

A matrix product alone uses every core by itself, but the element-wise work between two products does not. Scoring whole
chunks side by side keeps the cores busy through both.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

_FEWEST_ROWS = 64  # below this a chunk is too thin for an efficient product
_MOST_ROWS = 1024


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def blas_threads() -> int:
    """Return how many threads BLAS may use now: the cores, or less where the caller limited it."""
    return max((library["num_threads"] for library in _controller().select(user_api="blas").info()), default=1)


def in_chunks(work: Callable[[slice], Any], rows: int, *, numbers_per_row: int, most_numbers: int = 2**23) -> None:
    """Call `work` on slices that cover range(rows), side by side.

    Parameters
    ----------
    work : callable
        Takes a slice of rows and writes its result where the caller wants it.
    rows : int
    numbers_per_row, most_numbers : int
        A chunk holds at most `most_numbers` intermediate numbers, so memory does not grow with the batch.
    """
    threads = blas_threads()
    fair = -(-rows // threads)
    size = min(max(fair, _FEWEST_ROWS), _MOST_ROWS, max(1, most_numbers // max(numbers_per_row, 1)))
    chunks = [slice(start, min(start + size, rows)) for start in range(0, rows, size)]
    if len(chunks) == 1 or threads == 1:
        for chunk in chunks:
            work(chunk)
        return
    with _controller().limit(limits=1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, chunks):
            pass


def map_rows(
    work: Callable[[npt.NDArray[np.float64]], npt.NDArray[Any]],
    X: npt.NDArray[Any],
    *,
    width: int,
    numbers_per_row: int,
) -> npt.NDArray[np.float64]:
    """Return `work` of all rows of X, shape (n, width): in chunks, side by side, in float64.

    Parameters
    ----------
    work : callable
        Takes some rows of X as float64 and returns as many rows of `width` numbers.
    X : ndarray of shape (n, d)
    width : int
    numbers_per_row : int
        Intermediate numbers that `work` holds for a row.
    """
    out = np.empty((len(X), width))

    def fill(rows: slice) -> None:
        out[rows] = work(X[rows].astype(np.float64))

    in_chunks(fill, len(X), numbers_per_row=numbers_per_row)
    return out
