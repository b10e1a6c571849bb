"""The threads that work for all clients: few, and kept.

Whoever waits for one of them holds no thread. It matters for memory: the allocator gives every thread a heap of its
own, and what a heap once needed for a batch it keeps, so that with dozens of threads a server grows for hours. The
threads of libraries have heaps too; where the allocator can be told so, all of them share two.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from hycal.parallel.threads import kept_threads

T = TypeVar("T")

ANSWERING = 1, "hycal-answering"  # scoring takes every core by itself where that helps
LOOKING = 1, "hycal-looking"  # at images: so does the encoder
BULK = 2, "hycal-bulk"  # requests of many rows: small ones need not wait for them

_HEAPS = 2
_M_ARENA_MAX = -8  # of glibc's malloc.h


def few_heaps() -> None:
    """Let all threads of this process share two heaps, where the allocator is that of glibc; call it early."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another allocator, another system
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _HEAPS)


async def on(threads: tuple[int, str], work: Callable[..., T], *args: object, **options: object) -> T:
    """Return `work(*args, **options)`, done by one of `threads`."""
    pool = kept_threads(*threads)
    return await asyncio.get_running_loop().run_in_executor(pool, partial(work, *args, **options))
