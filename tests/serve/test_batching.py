"""Questions that wait at the same moment are answered in one go, and none spoils it for the others."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hycal.errors import HyCalError
from hycal.serve.batching import Batcher
from hycal.serve.embeddings import NPY, EmbeddingsRequest, answer_requests


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


def npy(rows) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, rows)
    return buffer.getvalue()


def plain(answers: bytes) -> list[list[tuple[str, float]]]:
    """Label and score of every candidate."""
    return [[(one["label"], one["score"]) for one in each["candidates"]] for each in json.loads(answers)["answers"]]


def flat(answers):
    return [candidate for asked in answers for each in asked for candidate in each]


def test_embeddings_asked_together_are_answered_as_alone(taught, service):
    rows = np.stack([example.row for example in service.state.examples])
    sound = [
        EmbeddingsRequest(npy(rows[:1]), NPY, 1),
        EmbeddingsRequest(npy(rows), NPY, 2),
        EmbeddingsRequest(npy(rows[3:5]), NPY, 5),
    ]
    together = [plain(answer) for answer in answer_requests(service, sound)]
    alone = [plain(answer) for question in sound for answer in answer_requests(service, [question])]
    assert [len(answers) for answers in together] == [1, len(rows), 2]
    assert [len(answers[0]) for answers in together] == [1, 2, 2]
    mine, theirs = flat(together), flat(alone)
    assert [label for label, _ in mine] == [label for label, _ in theirs]
    assert [score for _, score in mine] == pytest.approx([score for _, score in theirs], abs=1e-4)


@pytest.mark.parametrize(
    "body", [b"no array", npy(np.zeros((1, 48), np.float32)), npy(np.ones((1, 7), np.float32)), npy(np.ones((1, 48)))]
)
def test_a_question_without_sense_spoils_no_other(taught, service, body):
    rows = np.stack([example.row for example in service.state.examples])
    sound, unsound = EmbeddingsRequest(npy(rows), NPY, 3), EmbeddingsRequest(body, NPY, 3)
    first, refused, last = answer_requests(service, [sound, unsound, sound])
    assert isinstance(refused, HyCalError)
    assert plain(first) == plain(last) == plain(answer_requests(service, [sound])[0])


@pytest.mark.parametrize(
    "body",
    [
        b'{"rows": []}',
        b"{",
        b'{"rows": [[1, 2]]}',
        b'{"rows": [["one"]]}',
        b"",
        json.dumps({"rows": [[1.0] * 48]}).encode(),
    ],
)
def test_the_short_way_and_the_long_one_answer_alike(taught, body):
    """Without options a request takes the short way, see `hycal.serve.app`."""
    short, long = (taught.post(f"/api/classify-embeddings{options}", content=body) for options in ("", "?top=5"))
    assert short.status_code == long.status_code
    assert {**short.json(), "milliseconds": 0} == {**long.json(), "milliseconds": 0}
    kinds = [{**answer.headers, "content-length": 0} for answer in (short, long)]
    assert kinds[0] == kinds[1]


def test_options_are_checked_as_ever(taught):
    row = {"rows": [[1.0] * 48]}
    assert taught.post("/api/classify-embeddings?top=0", json=row).status_code == 422
    assert len(taught.post("/api/classify-embeddings?top=1", json=row).json()["answers"][0]["candidates"]) == 1
