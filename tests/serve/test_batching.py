"""Questions that wait at the same moment are answered in one go, and none spoils it for the others."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from hycal.errors import HyCalError
from hycal.serve.batching import Batcher


def asked(answer, questions, *, most=100, weigh=lambda question: 1):
    """Ask all questions while the first is being answered; return the outcomes and what was answered together."""
    groups, begun, held = [], threading.Event(), threading.Event()

    def answering(waiting):
        groups.append(list(waiting))
        begun.set()
        held.wait(10)
        return answer(waiting)

    async def ask():
        with ThreadPoolExecutor(1) as thread:
            together = Batcher(answering, thread, weigh=weigh, most=most)
            first = asyncio.create_task(together(questions[0]))
            await asyncio.to_thread(begun.wait, 10)
            rest = [asyncio.create_task(together(question)) for question in questions[1:]]
            await asyncio.sleep(0)
            held.set()
            return await asyncio.gather(first, *rest, return_exceptions=True)

    return asyncio.run(ask()), groups


def test_what_waits_is_answered_in_one_go_in_order():
    outcomes, groups = asked(lambda waiting: [10 * one for one in waiting], [1, 2, 3, 4])
    assert outcomes == [10, 20, 30, 40]
    assert groups == [[1], [2, 3, 4]]


def test_no_more_go_together_than_may_and_the_heavy_go_alone():
    outcomes, groups = asked(lambda waiting: waiting, [1, 2, 3, 9, 1], most=5, weigh=lambda question: question)
    assert outcomes == [1, 2, 3, 9, 1]
    assert groups == [[1], [2, 3], [9], [1]]


def test_an_error_in_the_place_of_an_answer_is_one_question_s_alone():
    refuse = HyCalError("no")
    outcomes, _ = asked(lambda waiting: [refuse if one == 3 else one for one in waiting], [1, 2, 3, 4])
    assert outcomes == [1, 2, refuse, 4]


def test_an_error_that_is_raised_reaches_everybody_and_the_next_are_answered():
    def answer(waiting):
        if 2 in waiting:
            raise RuntimeError("broken")
        return waiting

    outcomes, _ = asked(answer, [1, 2, 3, 9], most=5, weigh=lambda question: question)
    assert outcomes[0] == 1 and outcomes[3] == 9
    assert [str(one) for one in outcomes[1:3]] == ["broken", "broken"]
