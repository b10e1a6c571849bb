"""Embeddings as JSON or .npy: the same answers alone and in a batch, and a faulty request spoils no other."""

from __future__ import annotations

import io
import json
import tracemalloc

import numpy as np
import pytest

from hycal import HyCal
from hycal.errors import HyCalError
from hycal.project.answers import answer, rank
from hycal.serve.embeddings import EmbeddingsRequest, RowCount, answer_requests, rows_of
from hycal.serve.requests import NPY, body_limits
from hycal.serve.schemas import AnswersOut
from hycal.serve.serializers import describe_answer, encode_ranking
from hycal.serve.service import Limits, SentImage
from tests.support.services import client_of, new_service


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


def test_answers_to_embeddings_have_the_shape_that_is_promised(taught, service):
    state = service.project.state
    rows = np.stack([example.row for example in state.examples])
    found, ranked = answer(state, rows, top=3), rank(state, rows, top=3)
    unknown = [number % 2 == 0 for number in range(len(found))]
    told = AnswersOut.model_validate_json(encode_ranking(state, ranked, unknown, {"answering": 1.5}))
    slowly = [
        describe_answer(state, SentImage(str(number), None), item, flag)
        for number, (item, flag) in enumerate(zip(found, unknown, strict=True))
    ]
    assert told == AnswersOut(model=state.hash, answers=slowly, milliseconds={"answering": 1.5})


def test_embeddings_as_json_and_npy_give_the_same(taught, service):
    rows = np.stack([example.row for example in service.state.examples])
    by_json = taught.post("/api/classify-embeddings", json={"rows": rows.tolist()}).json()
    buffer = io.BytesIO()
    np.save(buffer, rows)
    kind = {"content-type": "application/octet-stream"}
    by_npy = taught.post("/api/classify-embeddings", content=buffer.getvalue(), headers=kind).json()
    assert by_json["answers"] == by_npy["answers"]
    clf = HyCal(fusion="image")
    for label, class_ in service.state.classes.items():
        clf.partial_fit(class_.rows, [label] * len(class_.rows), domain=class_.domain)
    assert [answer["candidates"][0]["label"] for answer in by_npy["answers"]] == clf.predict(rows).tolist()


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (np.zeros((2, 48)), "float32"),
        (np.zeros((2, 7), np.float32), "48"),
        (np.zeros(48, np.float32), "shape"),
        (np.full((1, 48), np.nan, np.float32), "NaN"),
        (np.zeros((1, 48), np.float32), "all zeros"),
        (np.array([{"a": 1}]), "no .npy file"),
    ],
)
def test_embeddings_that_make_no_sense(taught, rows, reason):
    buffer = io.BytesIO()
    np.save(buffer, rows, allow_pickle=True)
    kind = {"content-type": "application/octet-stream"}
    answer = taught.post("/api/classify-embeddings", content=buffer.getvalue(), headers=kind)
    assert answer.status_code == 400
    assert reason in answer.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"rows": [' + b"[]," * 400_000 + b"[]]}",
        b'{"rows": [' + b"[0]," * 400_000 + b"[0]]}",
        b'{"rows": [[' + b"0," * 800_000 + b"0]]}",
        b'{"rows": [[' + b"null," * 190_000 + b"0]]}",
        b'{"rows": ' + b"[" * 1_500_000,
        b'{"a":' * 300_000,
        b'{"rows": [["' + b"a" * 1_500_000 + b'"]]}',
    ],
    ids=["empty rows", "thin rows", "a wide row", "nulls", "nested lists", "nested objects", "a string"],
)
def test_hostile_json_is_refused_before_it_is_parsed(taught, body):
    """What a list takes is far more than its two bytes: 64 MB of empty rows took 2.8 GB and 52 s."""
    tracemalloc.start()
    told = taught.post("/api/classify-embeddings", content=body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert told.status_code in (400, 413)
    assert len(told.content) < 500
    assert peak < 2**23


def test_rows_are_counted_up_to_the_limits():
    def body(rows: int, width: int) -> bytes:
        return json.dumps({"rows": [[-1.2345678901234567e-123] * width] * rows}).encode()

    RowCount(4, 3).take(body(4, 3))
    assert rows_of(body(4, 3), "application/json", most=4).shape == (4, 3)
    for rows, width, piece in ((5, 3, 1000), (4, 5, 1000), (5, 3, 7), (4, 5, 7), (1, 5, 7)):
        content, counted = body(rows, width), RowCount(4, 3)
        with pytest.raises(HyCalError, match=r"limit|width"):
            for start in range(0, len(content), piece):
                counted.take(content[start : start + piece])
    most = body_limits(Limits(rows=4, request_bytes=10**9), 1000)
    assert len(body(4, 1000)) <= most("/api/classify-embeddings", "application/json")
    assert len(npy(np.ones((4, 1000), np.float32))) <= most("/api/classify-embeddings", NPY)


@pytest.mark.parametrize("body", [b"[[],[],[],[],[]]", b"[0,0,0,0,0,0,0,0]", b'{"rows": [[[[[['])
def test_small_bodies_of_many_rows_never_reach_the_parser(tmp_path, monkeypatch, body):
    monkeypatch.setattr("hycal.serve.embeddings.parse_json", lambda *given: pytest.fail("parsed"))
    service = new_service(tmp_path / "m.hycal", rows=2)
    monkeypatch.setattr(type(service), "width", 2)
    with client_of(service) as client:
        assert client.post("/api/classify-embeddings", content=body).status_code == 400
        assert client.post("/api/classify-embeddings?top=1", content=body).status_code == 400


def test_labels_to_learn_are_parsed_up_to_the_first_fault(taught, service):
    before = service.state.hash
    for body in (b'{"labels": {' + b'"a":1,' * 100_000 + b'"a":1}}', b'{"labels": {}}', b"{}", b"[]", b"\xff"):
        told = taught.post("/api/learn", content=body)
        assert told.status_code == 400
        assert "labels" in told.json()["detail"]
        assert len(told.content) < 500
    assert service.state.hash == before


@pytest.mark.parametrize("number", ["1e39", "-1e39"])
def test_infinite_numbers_are_refused_before_the_classifier_sees_them(number):
    with pytest.raises(HyCalError, match="too large for float32"):
        rows_of(b'{"rows": [[0.5, %s]]}' % number.encode(), "application/json", most=4)
