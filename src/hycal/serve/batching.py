"""Questions that wait at the same moment are answered in one go, by one thread that is kept.

Scoring sixteen rows costs little more than scoring one, so the more clients ask, the less each answer costs. One thread
is enough, since scoring takes every core by itself where that helps; and whoever waits, waits without a thread: each
of them would keep work space and a heap of the allocator for good.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


class Together(Generic[Q, A]):
    """A function of many questions, asked one question at a time by many.

    Parameters
    ----------
    answer : callable
        Takes questions, returns the answer to each in their order. An exception that stands in the place of an answer
        is raised where that question was asked; one that is raised ends all of them.
    thread : Executor
        Of one thread.
    weigh : callable
        The weight of a question.
    most : int
        The weight that is answered in one go; a question heavier than that is answered alone.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[Q]], Sequence[A | Exception]],
        thread: Executor,
        *,
        weigh: Callable[[Q], int],
        most: int,
    ) -> None:
        self._answer = answer
        self._thread = thread
        self._weigh = weigh
        self._most = most
        self._waiting: deque[tuple[Q, Future[A]]] = deque()

    async def __call__(self, question: Q) -> A:
        """Return the answer to `question`."""
        future: Future[A] = Future()
        self._waiting.append((question, future))
        self._thread.submit(self._answer_some)
        return await asyncio.wrap_future(future)

    def _answer_some(self) -> None:
        """Answer what waits, as much as may go together; nothing, if an earlier call took it along."""
        taken = self._taken()
        if not taken:
            return
        answers: Sequence[A | Exception]
        try:
            answers = self._answer([question for question, _ in taken])
        except Exception as error:
            answers = [error] * len(taken)
        for (_, future), answer in zip(taken, answers, strict=True):
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    def _taken(self) -> list[tuple[Q, Future[A]]]:
        taken: list[tuple[Q, Future[A]]] = []
        weight = 0
        while self._waiting:
            weight += self._weigh(self._waiting[0][0])
            if taken and weight > self._most:
                break
            question, future = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                taken.append((question, future))
        return taken
