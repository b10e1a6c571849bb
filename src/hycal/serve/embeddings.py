"""Embeddings as clients send them, JSON for convenience, .npy for speed, and the answers to them.

Nothing in them is executed.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from hycal.errors import HyCalError
from hycal.parallel.threads import kept_threads
from hycal.serve import serializers
from hycal.serve.asking import Rows
from hycal.serve.batching import Together
from hycal.serve.service import Service, Stopwatch
from hycal.serve.threads import ANSWERING, BULK, on
from hycal.validation import Floats

NPY = "application/octet-stream"
PREFIX, EMBEDDINGS = "/api", "/classify-embeddings"
TOP = 5  # classes that are told for each row if nobody says how many
_TOGETHER = 2**19 + 2**10  # bytes of questions answered in one go: 256 rows of 512 numbers, and an .npy header


class AnswersToEmbeddings:
    """The answer to a request with embeddings; those that are small and wait at the same time are scored together."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._together = Together(
            partial(answers_to, service), kept_threads(*ANSWERING), weigh=lambda asked: len(asked.body), most=_TOGETHER
        )

    async def __call__(self, request: Request, top: int = TOP, unknown: float | None = None) -> Response:
        """Return JSON of `shapes.Answers`."""
        asked = Question(await request.body(), request.headers.get("content-type", ""), top, unknown)
        if len(asked.body) <= _TOGETHER:
            return Response(await self._together(asked), media_type="application/json")
        (told,) = await on(BULK, answers_to, self._service, [asked])
        if isinstance(told, Exception):
            raise told
        return Response(told, media_type="application/json")


@dataclass(frozen=True)
class Question:
    """Embeddings as they came: a body and its media type; how many classes to tell for each, and whether any fits.

    `unknown` is the share of learned images that may be taken for unknown; None does not ask.
    """

    body: bytes
    kind: str
    top: int
    unknown: float | None = None


def answers_to(service: Service, questions: Sequence[Question]) -> list[bytes | Exception]:
    """Return JSON of `shapes.Answers` for each question, all of one model; a HyCalError for what makes no sense."""
    try:
        rows = [rows_of(question.body, question.kind, most=service.limits.rows) for question in questions]
        return list(_told(service, questions, rows))
    except HyCalError as error:
        if len(questions) == 1:
            return [error]
    return [answer for question in questions for answer in answers_to(service, [question])]  # one spoilt it for all


def _told(service: Service, questions: Sequence[Question], rows: Sequence[Floats]) -> Iterator[bytes]:
    state, watch = service.state, Stopwatch()
    with watch.on("answering"):
        found = service.ranking(state, _stacked(rows), top=max(question.top for question in questions))
    first = 0
    for question, asked in zip(questions, rows, strict=True):
        part = found.part(slice(first, first + len(asked)), top=question.top)
        unknown = service.unknown(state, asked, question.unknown)
        yield serializers.answers_to_embeddings(state, part, unknown, watch.spent)
        first += len(asked)


def _stacked(rows: Sequence[Floats]) -> Floats:
    if len({part.shape[1] for part in rows}) > 1:
        raise HyCalError("The embeddings differ in width.")
    return np.concatenate(rows) if len(rows) > 1 else rows[0]


def rows_of(body: bytes, kind: str, *, most: int) -> Floats:
    """Return the rows in a request body; `kind` is its media type."""
    rows = _from_npy(body) if kind.partition(";")[0].strip() == NPY else _from_json(body)
    if rows.ndim != 2 or not len(rows):
        raise HyCalError(f"The embeddings have shape {rows.shape}; expected (n, d), one row for each image.")
    if len(rows) > most:
        raise HyCalError(f"{len(rows):,} embeddings in one request; the limit is {most:,}. Send them in several.")
    return rows


def _from_npy(body: bytes) -> Floats:
    try:
        rows = np.lib.format.read_array(io.BytesIO(body), allow_pickle=False, max_header_size=10_000)
    except Exception as error:  # numpy parses the header as Python does, with as many kinds of errors
        raise HyCalError(f"The body is no .npy file: {error} Send what numpy.save writes.") from None
    if rows.dtype != np.float32:
        raise HyCalError(f"The embeddings are {rows.dtype}; expected float32. Convert them with astype('float32').")
    return np.ascontiguousarray(rows)


def _from_json(body: bytes) -> Floats:
    try:
        rows = Rows.model_validate_json(body).rows
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and the classifier refuses it
            return np.array(rows, dtype=np.float32)
    except ValidationError as error:
        first = error.errors()[0]
        raise HyCalError(f'Expected JSON {{"rows": [[...], ...]}}: {first["msg"]}.') from None
    except ValueError:
        raise HyCalError("The rows differ in length; expected one embedding for each image, all as wide.") from None
