"""Batches of requests, the few threads that do the work for all clients, and the time that it takes.

Scoring sixteen rows costs little more than scoring one, so requests that wait at the same time are answered in one
call. One thread is enough, because scoring uses every core by itself where that helps.

A request that waits holds no thread. This matters for memory: the allocator gives every thread a heap of its own, and a
heap keeps what it once needed for a batch. With dozens of threads a server would grow for hours.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Generic, TypeVar

from hycal.parallel.threads import thread_pool

T = TypeVar("T")
Q = TypeVar("Q")
A = TypeVar("A")

# Count and name of the threads for each kind of work.
ANSWERING = 1, "hycal-answering"  # scoring uses every core by itself where that helps
EMBEDDING = 1, "hycal-embedding"  # so does the encoder
BULK = 2, "hycal-bulk"  # requests of many rows; small requests do not wait for them


async def run_on(threads: tuple[int, str], work: Callable[..., T], *args: object, **options: object) -> T:
    """Return `work(*args, **options)`, run by one of `threads`."""
    pool = thread_pool(*threads)
    return await asyncio.get_running_loop().run_in_executor(pool, partial(work, *args, **options))


@dataclass
class Stopwatch:
    """Milliseconds of each kind of work."""

    spent: dict[str, float] = field(default_factory=dict)

    @contextlib.contextmanager
    def on(self, what: str) -> Iterator[None]:
        """Add the time of a block."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.spent[what] = self.spent.get(what, 0.0) + 1e3 * (time.perf_counter() - began)


@dataclass(eq=False)
class Batcher(Generic[Q, A]):
    """Collect the questions that wait at the same time, and answer them in one call.

    `answer` takes questions and returns their answers in the same order. An exception in the place of an answer is
    raised for that question; an exception that `answer` raises is raised for all of them.
    """

    answer: Callable[[Sequence[Q]], Sequence[A | Exception]]
    thread: Executor  # of one thread
    _: KW_ONLY
    weigh: Callable[[Q], int]  # the weight of a question
    most: int  # the largest weight of one batch; a heavier question is a batch of its own
    _waiting: deque[tuple[Q, Future[A]]] = field(default_factory=deque, init=False, repr=False)

    async def __call__(self, question: Q) -> A:
        """Return the answer to `question`."""
        future: Future[A] = Future()
        self._waiting.append((question, future))
        self.thread.submit(self._answer_batch)
        return await asyncio.wrap_future(future)

    def _answer_batch(self) -> None:
        """Answer one batch of waiting questions; an earlier call may have left none."""
        batch = self._next_batch()
        if not batch:
            return
        answers: Sequence[A | Exception]
        try:
            answers = self.answer([question for question, _ in batch])
        except Exception as error:
            answers = [error] * len(batch)
        for (_, future), answer in zip(batch, answers, strict=True):
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    def _next_batch(self) -> list[tuple[Q, Future[A]]]:
        batch: list[tuple[Q, Future[A]]] = []
        weight = 0
        while self._waiting:
            weight += self.weigh(self._waiting[0][0])
            if batch and weight > self.most:
                break
            question, future = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                batch.append((question, future))
        return batch
