"""Independent pieces of work on all cores: one thread for each piece, one BLAS thread in each.

A matrix product alone uses every core by itself, but the element-wise work between two products does not, and small
factorisations lose more by sharing than they gain. Whole pieces side by side keep the cores busy through all of it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from hycal.validation import Floats

T = TypeVar("T")
R = TypeVar("R")

_FEWEST_ROWS = 64  # below this a chunk is too thin for an efficient product
_MOST_ROWS = 1024


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@cache
def _section() -> threading.Lock:
    """Return the lock of the one caller who may limit BLAS: the limit belongs to the whole process.

    Callers that overlapped would each restore what the other had set.
    """
    return threading.Lock()


@cache
def kept_threads(count: int, name: str = "hycal") -> ThreadPoolExecutor:
    """Return threads that are kept for the life of the process.

    New ones at every call would fault in their work space again, and leave what they held in yet another heap of the
    allocator: a server that runs for days would grow by and by.
    """
    return ThreadPoolExecutor(count, thread_name_prefix=name)


if hasattr(os, "register_at_fork"):  # a forked child has none of its parent's threads, and holds none of its locks
    os.register_at_fork(after_in_child=kept_threads.cache_clear)
    os.register_at_fork(after_in_child=_section.cache_clear)


class _Process:
    """What was decided for the whole process: how many threads may work side by side, where BLAS has one for good."""

    threads = 0


def blas_threads() -> int:
    """Return how many threads may work now: those of BLAS, that is the cores, or less where somebody limited it."""
    return _Process.threads or max((library["num_threads"] for library in _controller().info()), default=1)


def keep_one_blas_thread() -> None:
    """Cap BLAS at one thread from now on; pieces of work still go side by side on all cores.

    For servers. A product on all cores waits for the product of another request, and both spin for the same cores:
    an answer of 5 ms takes 150.
    """
    _Process.threads = blas_threads()
    _controller().limit(limits=1)


class _Capped(threading.local):
    """How many threads this thread may put to work, if it has capped BLAS; else 0."""

    threads = 0


_CAPPED = _Capped()


class _Scratch(threading.local):
    """Work space of one thread, kept between calls."""

    def __init__(self) -> None:
        self.arrays: dict[str, Floats] = {}


_SCRATCH = _Scratch()


def scratch(name: str, shape: tuple[int, int]) -> Floats:
    """Return this thread's array of that name, with undefined content.

    Large results that live for one call only go here: memory fresh from the system costs a page fault every 4 kB.
    """
    size = shape[0] * shape[1]
    held = _SCRATCH.arrays.get(name)
    if held is None or held.size < size:
        held = _SCRATCH.arrays[name] = np.empty(size, np.float32)
    return held[:size].reshape(shape)


def side_by_side(work: Callable[[T], Any], pieces: Sequence[T]) -> None:
    """Call `work` on every piece; it writes its result where the caller wants it. The first error is raised.

    While another thread is at it, the cores are taken: the pieces are then done one after the other.
    """
    if len(pieces) == 1:  # BLAS may have all cores
        work(pieces[0])
        return
    with one_blas_thread() as threads:
        for _ in kept_threads(threads).map(work, pieces) if threads > 1 else map(work, pieces):
            pass


@contextmanager
def one_blas_thread() -> Iterator[int]:
    """Cap BLAS at one thread, and yield how many threads may work side by side meanwhile.

    Around several calls of `side_by_side` it spares BLAS from waking and stopping its threads between them. Where
    another thread is at it, nothing is capped and there is one.
    """
    if _CAPPED.threads:
        yield _CAPPED.threads
        return
    threads, section = blas_threads(), _section()
    if threads == 1 or not section.acquire(blocking=False):
        yield 1
        return
    try:
        with _controller().limit(limits=1):
            _CAPPED.threads = threads
            yield threads
    finally:
        _CAPPED.threads = 0
        section.release()


def mapped(work: Callable[[T], R], pieces: Sequence[T], sizes: Sequence[int]) -> list[R]:
    """Return `work` of every piece, in their order, done side by side: the largest first, so that none ends alone."""
    results: dict[int, R] = {}

    def keep(number: int) -> None:
        results[number] = work(pieces[number])

    side_by_side(keep, sorted(range(len(pieces)), key=lambda number: -sizes[number]))
    return [results[number] for number in range(len(pieces))]


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
    fair = -(-rows // blas_threads())
    size = min(max(fair, _FEWEST_ROWS), _MOST_ROWS, max(1, most_numbers // max(numbers_per_row, 1)))
    side_by_side(work, [slice(start, min(start + size, rows)) for start in range(0, rows, size)])


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
