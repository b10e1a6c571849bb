"""Requests that hold embeddings, as JSON for convenience or .npy for speed, and the responses to them.

Nothing in a request is executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from hycal.errors import HyCalError
from hycal.parallel.threads import thread_pool
from hycal.project import State
from hycal.serve.batching import ANSWERING, BULK, Batcher, Stopwatch, run_on
from hycal.serve.requests import EmbeddingsIn, is_npy, parse_json
from hycal.serve.serializers import encode_ranking
from hycal.serve.service import Service
from hycal.storage.npz import load_array
from hycal.validation import Floats

TOP = 5  # candidates for each row if the request does not say how many
_BATCH_BYTES = 2**19 + 2**10  # of the requests in one batch: 256 rows of 512 numbers, and an .npy header


@dataclass(frozen=True)
class EmbeddingsRequest:
    """A body of embeddings and its media type, how many candidates to name, and whether to look for unknown rows.

    `unknown` is the share of learned images that may be called unknown; 0 does not ask. `view` names the encoder of a
    model with views that made the rows; "" if they have all views side by side.
    """

    body: bytes
    kind: str
    top: int
    unknown: float = 0.0
    view: str = ""


class EmbeddingsEndpoint:
    """The endpoint for embeddings. Small requests that wait at the same time are scored in one batch."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._batcher = Batcher(
            partial(answer_requests, service),
            thread_pool(*ANSWERING),
            weigh=lambda request: len(request.body),
            most=_BATCH_BYTES,
        )

    async def __call__(self, request: Request, top: int = TOP, unknown: float = 0.0, view: str = "") -> Response:
        """Return JSON of `schemas.AnswersOut`."""
        kind = request.headers.get("content-type", "")
        counted = None if is_npy(kind) else RowCount(self._service.limits.rows, self._service.width)
        asked = EmbeddingsRequest(await _received(request, counted), kind, top, unknown, view)
        if len(asked.body) <= _BATCH_BYTES:
            return Response(await self._batcher(asked), media_type="application/json")
        (answer,) = await run_on(BULK, answer_requests, self._service, [asked])
        if isinstance(answer, Exception):
            raise answer
        return Response(answer, media_type="application/json")


def answer_requests(service: Service, requests: Sequence[EmbeddingsRequest]) -> list[bytes | Exception]:
    """Return JSON of `schemas.AnswersOut` for each request, all from one model; a HyCalError for a faulty request."""
    try:
        state = service.state
        rows = [
            state.space.widened(rows_of(request.body, request.kind, most=service.limits.rows), request.view)
            for request in requests
        ]
        return list(_answer_batch(service, state, requests, rows))
    except HyCalError as error:
        if len(requests) == 1:
            return [error]
    # One request is faulty: each is answered alone, so that the others still get their answers.
    return [answer for request in requests for answer in answer_requests(service, [request])]


def _answer_batch(
    service: Service, state: State, requests: Sequence[EmbeddingsRequest], rows: Sequence[Floats]
) -> Iterator[bytes]:
    watch = Stopwatch()
    with watch.on("answering"):
        found = service.ranking(state, _stacked(rows), top=max(request.top for request in requests))
    first = 0
    for request, own in zip(requests, rows, strict=True):
        part = found.part(slice(first, first + len(own)), top=request.top)
        yield encode_ranking(state, part, service.unknown(state, own, request.unknown), watch.spent)
        first += len(own)


def _stacked(rows: Sequence[Floats]) -> Floats:
    if len({part.shape[1] for part in rows}) > 1:
        raise HyCalError("The embeddings differ in width.")
    return np.concatenate(rows) if len(rows) > 1 else rows[0]


class RowCount:
    """How many rows and numbers JSON can hold, by its brackets and commas, counted while it comes.

    A list takes far more memory than its two bytes, so this is known before anything is parsed. A row of
    `{"rows": [[...], ...]}` has a bracket, and each of its numbers but one a comma.
    """

    def __init__(self, most: int, width: int) -> None:
        self._most = most
        self._width = width
        self._brackets = self._commas = 0

    def take(self, piece: bytes) -> None:
        """Count the next piece of a body; raise a HyCalError if it holds too much."""
        self._brackets += piece.count(b"[")
        check_rows(self._brackets - 1, self._most)
        self._commas += piece.count(b",")
        if self._commas > max(self._brackets - 1, 1) * self._width:
            raise HyCalError(f"A row has more than {self._width} numbers, the width of this model's embeddings.")


async def _received(request: Request, counted: RowCount | None) -> bytes:
    """Return the body of a request; counted JSON is refused as soon as it holds too much."""
    if counted is None:
        return await request.body()
    pieces = []
    async for piece in request.stream():
        counted.take(piece)
        pieces.append(piece)
    return b"".join(pieces)


def check_rows(rows: int, most: int) -> None:
    """Refuse more embeddings than a request may hold."""
    if rows > most:
        raise HyCalError(f"More than {most:,} embeddings in one request, which is the limit. Send them in several.")


def rows_of(body: bytes, kind: str, *, most: int) -> Floats:
    """Return the rows in a request body, `most` of them at most; `kind` is its media type."""
    rows = _from_npy(body) if is_npy(kind) else _from_json(body)
    if rows.ndim != 2 or not rows.size:
        raise HyCalError(f"The embeddings have shape {rows.shape}; expected (n, d), one row for each image.")
    check_rows(len(rows), most)
    if not np.isfinite(rows).all():  # the classifier would ask scikit-learn, and others wait while that is imported
        raise HyCalError("An embedding holds NaN, infinity, or a number too large for float32. Send finite numbers.")
    return rows


def _from_npy(body: bytes) -> Floats:
    try:
        rows = load_array(body)
    except Exception as error:  # numpy parses the header as Python does, with as many kinds of errors
        raise HyCalError(f"The body is no .npy file: {error} Send what numpy.save writes.") from None
    if rows.dtype != np.float32:
        raise HyCalError(f"The embeddings are {rows.dtype}; expected float32. Convert them with astype('float32').")
    return np.ascontiguousarray(rows)


def _from_json(body: bytes) -> Floats:
    found = parse_json(body, EmbeddingsIn).rows
    try:
        with np.errstate(over="ignore"):  # too large numbers become infinite, and are refused
            return np.array(found, dtype=np.float32)
    except ValueError:
        raise HyCalError("The rows differ in length; expected one embedding for each image, all as wide.") from None
