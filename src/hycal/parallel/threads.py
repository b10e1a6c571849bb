"""Independent pieces of work on all cores: one thread for each piece, with one BLAS thread in each.

A large matrix product uses every core. The element-wise work between two products does not, and small factorisations
lose more by sharing cores than they gain. Pieces that run in parallel keep the cores busy throughout.
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

_FEWEST_ROWS = 64  # a thinner chunk makes an inefficient matrix product
_MOST_ROWS = 1024


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@cache
def _section() -> threading.Lock:
    """Return the lock of the BLAS cap, which belongs to the whole process.

    Without the lock, two callers at once would each restore the cap that the other had set.
    """
    return threading.Lock()


@cache
def thread_pool(count: int, name: str = "hycal") -> ThreadPoolExecutor:
    """Return a pool of threads that lives as long as the process.

    New threads at every call would page in their work space again, and the allocator would give each a heap of its own:
    the memory of a server that runs for days would grow.
    """
    return ThreadPoolExecutor(count, thread_name_prefix=name)


if hasattr(os, "register_at_fork"):  # a forked child has neither the threads of its parent nor its locks
    os.register_at_fork(after_in_child=thread_pool.cache_clear)
    os.register_at_fork(after_in_child=_section.cache_clear)


class _Process:
    """State of the whole process: how many threads may work in parallel, once BLAS is capped for good; else 0."""

    threads = 0


def blas_threads() -> int:
    """Return how many threads may work in parallel: those of BLAS, that is all cores unless BLAS was limited."""
    return _Process.threads or max((library["num_threads"] for library in _controller().info()), default=1)


def keep_one_blas_thread() -> None:
    """Cap BLAS at one thread for the rest of the process; pieces of work still run in parallel on all cores.

    For servers. Two requests whose products use all cores wait for each other and spin: an answer of 5 ms takes 150.
    """
    _Process.threads = blas_threads()
    _controller().limit(limits=1)


class _Capped(threading.local):
    """The number of threads that this thread may use, if it holds the BLAS cap; else 0."""

    threads = 0


_CAPPED = _Capped()


class _Scratch(threading.local):
    """Arrays of one thread that are kept between calls."""

    def __init__(self) -> None:
        self.arrays: dict[str, Floats] = {}


_SCRATCH = _Scratch()


def scratch(name: str, shape: tuple[int, int]) -> Floats:
    """Return this thread's array of that name, with undefined content.

    For large results that live for one call: fresh memory from the system costs a page fault every 4 kB.
    """
    size = shape[0] * shape[1]
    held = _SCRATCH.arrays.get(name)
    if held is None or held.size < size:
        held = _SCRATCH.arrays[name] = np.empty(size, np.float32)
    return held[:size].reshape(shape)


def run_parallel(work: Callable[[T], Any], pieces: Sequence[T]) -> None:
    """Call `work` on every piece, in parallel; `work` writes its result itself. The first error is raised.

    If another thread holds the BLAS cap, run serially.
    """
    if len(pieces) == 1:  # BLAS may have all cores
        work(pieces[0])
        return
    with one_blas_thread() as threads:
        for _ in thread_pool(threads).map(work, pieces) if threads > 1 else map(work, pieces):
            pass


@contextmanager
def one_blas_thread() -> Iterator[int]:
    """Cap BLAS at one thread, and yield how many threads may work in parallel meanwhile.

    Around several calls of `run_parallel`, it keeps BLAS from waking and stopping its threads between the calls. If
    another thread holds the cap, nothing is capped and the number is 1.
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


def map_parallel(work: Callable[[T], R], pieces: Sequence[T], sizes: Sequence[int]) -> list[R]:
    """Return the result of `work` for every piece, in order. The largest pieces start first: they take longest."""
    results: dict[int, R] = {}

    def keep(number: int) -> None:
        results[number] = work(pieces[number])

    run_parallel(keep, sorted(range(len(pieces)), key=lambda number: -sizes[number]))
    return [results[number] for number in range(len(pieces))]


def run_in_chunks(work: Callable[[slice], Any], rows: int, *, numbers_per_row: int, most_numbers: int = 2**23) -> None:
    """Call `work`, which writes its result itself, on slices that cover range(rows), in parallel.

    A chunk holds at most `most_numbers` intermediate numbers, so memory does not grow with the batch.
    """
    fair = -(-rows // blas_threads())
    size = min(max(fair, _FEWEST_ROWS), _MOST_ROWS, max(1, most_numbers // max(numbers_per_row, 1)))
    run_parallel(work, [slice(start, min(start + size, rows)) for start in range(0, rows, size)])


def map_rows(
    work: Callable[[npt.NDArray[np.float64]], npt.NDArray[Any]],
    X: npt.NDArray[Any],
    *,
    width: int,
    numbers_per_row: int,
) -> npt.NDArray[np.float64]:
    """Return `work` of all rows of X, shape (n, width), in float64; chunks of rows run in parallel.

    `work` takes some rows of X as float64, and holds `numbers_per_row` intermediate numbers for each.
    """
    out = np.empty((len(X), width))

    def fill(rows: slice) -> None:
        out[rows] = work(X[rows].astype(np.float64))

    run_in_chunks(fill, len(X), numbers_per_row=numbers_per_row)
    return out
