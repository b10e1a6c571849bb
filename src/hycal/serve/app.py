"""The web application: the guard, the API, the page."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hycal._version import __version__
from hycal.errors import HyCalError, MovedOnError, ReadOnlyError, StorageError
from hycal.escaping import whole_unicode
from hycal.project import LockedError, Project
from hycal.project.state_file import MOST_FRAMES
from hycal.serve.embeddings import EmbeddingsEndpoint
from hycal.serve.label_studio import LabelStudio
from hycal.serve.label_studio import router as label_studio_router
from hycal.serve.metrics import Metrics
from hycal.serve.pile.desk import PileDesk
from hycal.serve.pile.routes import pile_router
from hycal.serve.requests import EMBEDDINGS, PREFIX, body_limits
from hycal.serve.routes import ERRORS, router
from hycal.serve.security import METRICS, Access, Guard, without_changes
from hycal.serve.serializers import PlainJson
from hycal.serve.service import Service, UnknownImageError

PAGE = Path(__file__).with_name("page")
MOST_FAULTS, LONGEST_PLACE = 10, 100  # of a malformed request, in the response
SECONDS_OF_QUIET = 2.0  # before changes move from the journal into the file
MANY_CHANGES = MOST_FRAMES // 2  # at MOST_FRAMES the next change would have to wait for the file
_log = logging.getLogger(__name__)


def make_app(service: Service, access: Access | None = None, *, label_studio: LabelStudio | None = None) -> ASGIApp:
    """Return the application of one service; by default only this machine has access, and Label Studio no routes."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        threading.Thread(target=service.warm, name="hycal-warming", daemon=True).start()
        with compacting(service.project, look=service.follow_space):
            yield
        app.state.desk.stop()

    app = FastAPI(
        title="hycal",
        version=__version__,
        description="One model: classify images, correct answers, learn, forget, undo.",
        docs_url=None,  # these pages load scripts from other hosts; the document itself is at /openapi.json
        redoc_url=None,
        default_response_class=PlainJson,
        lifespan=lifespan,
    )
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    embeddings, limits = EmbeddingsEndpoint(service), service.limits
    app.state.service, app.state.embeddings = service, embeddings  # the routes find them here
    app.state.desk = PileDesk(service)
    app.include_router(router)
    if label_studio is not None:
        app.state.label_studio = label_studio
        app.include_router(label_studio_router)
    app.include_router(pile_router)
    metrics = Metrics(service)
    app.add_api_route(METRICS, metrics.respond, summary="Metrics for Prometheus", responses=_METRICS_RESPONSES)
    app.mount("/", StaticFiles(directory=PAGE, html=True))
    answering = _with_head(_with_short_cut(app, embeddings))
    guard = Guard(
        without_changes(answering) if service.read_only else answering,
        access or Access(),
        most_bytes=lambda path, kind: body_limits(limits, service.width)(path, kind),  # its encoder may change
        most_held=limits.held_bytes,
        most_requests=limits.requests,
    )
    return metrics.watching(guard)


def _with_head(app: ASGIApp) -> ASGIApp:
    """Return `app` with an answer to HEAD wherever it has one to GET: the same, without its body."""

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        asked = {**scope, "method": "GET"}
        await app(asked, receive, send_head)
        scope["route"] = asked.get("route")  # for the metrics

    return dispatch


def _with_short_cut(app: ASGIApp, embeddings: EmbeddingsEndpoint) -> ASGIApp:
    """Return `app` with a short cut for embeddings, which programs send by the thousand.

    What the framework does for every request, from finding the route to checking its parameters, takes as long as the
    answer to one row. A request with options takes the usual way.
    """
    path, known = PREFIX + EMBEDDINGS, tuple(_HANDLERS)

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        plain = scope["type"] == "http" and scope["path"] == path and scope["method"] == "POST"
        if not plain or scope["query_string"]:
            await app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            response = await embeddings(request)
        except known as error:
            kind = next(kind for kind in type(error).__mro__ if kind in _HANDLERS)
            response = await _HANDLERS[kind](request, error)
        await response(scope, receive, send)

    return dispatch


def _handler(status: int) -> Callable[[Request, Any], Awaitable[Response]]:
    async def respond(request: Request, error: Exception) -> Response:
        return PlainJson({"detail": whole_unicode(str(error))}, status_code=status)

    return respond


async def _describe_refusal(request: Request, error: HTTPException) -> Response:
    """Answer as the framework does. It says 400 for every failed upload; an error of this system is a 5xx."""
    cause = error.__cause__
    if isinstance(cause, OSError):
        problem = StorageError(
            f"The upload cannot be kept for now: {cause.strerror or cause}. Nothing was changed. Check that the "
            "server's folder of temporary files (TMPDIR) has room and may be written, then send it again."
        )
        return await _handler(507)(request, problem)
    return PlainJson({"detail": error.detail}, status_code=error.status_code, headers=error.headers)


async def _describe_faults(request: Request, error: RequestValidationError) -> Response:
    """Say where a request is malformed and what was expected there, but never repeat it: JSON may not carry it."""
    faults = [
        {"loc": [_describe_place(step) for step in fault["loc"]], "msg": fault["msg"], "type": fault["type"]}
        for fault in error.errors()[:MOST_FAULTS]
    ]
    return PlainJson({"detail": faults}, status_code=422)


def _describe_place(step: str | int) -> str | int:
    return whole_unicode(step[:LONGEST_PLACE]) if isinstance(step, str) else step


_METRICS_RESPONSES: dict[int | str, dict[str, Any]] = {
    **ERRORS,
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Text that Prometheus reads."},
}
_HANDLERS: Mapping[Any, Callable[[Request, Any], Awaitable[Response]]] = {
    HTTPException: _describe_refusal,
    RequestValidationError: _describe_faults,
    ReadOnlyError: _handler(403),
    LockedError: _handler(503),
    StorageError: _handler(507),
    UnknownImageError: _handler(404),
    MovedOnError: _handler(409),
    HyCalError: _handler(400),
}


@contextlib.contextmanager
def compacting(
    project: Project, *, look: Callable[[], object] | None = None, seconds: float = SECONDS_OF_QUIET
) -> Iterator[None]:
    """Let changes move from the journal into the model file, in a thread while the block runs, and at its end.

    It happens when the model has not changed for some seconds, and when the journal is long. The same thread looks at
    the file every time, by `look` if there is one: what another program forgot for good leaves the memory also if
    nobody asks.
    """
    ending = threading.Event()

    def work() -> None:
        last = project.state.version  # the state itself would hold images that are forgotten meanwhile
        while not ending.wait(seconds):
            with contextlib.suppress(HyCalError, OSError):  # the next request reports it
                (look or project.current)()
            if project.state.version == last or project.waiting >= MANY_CHANGES:
                _compact(project)
            last = project.state.version

    thread = threading.Thread(target=work, name="hycal-compaction", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
        _compact(project)


def _compact(project: Project) -> None:
    try:
        project.close()
    except (HyCalError, OSError) as error:  # the journal stays, so nothing is lost
        _log.warning("changes stay in the journal for now: %s", error)
