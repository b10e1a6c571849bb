"""The web application: the guard, the API, the page."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from hycal._version import __version__
from hycal.errors import HyCalError, MovedOnError, StorageError
from hycal.project import LockedError
from hycal.serve import serializers
from hycal.serve.compaction import settling
from hycal.serve.embeddings import EMBEDDINGS, PREFIX, AnswersToEmbeddings
from hycal.serve.routes import api
from hycal.serve.security import Door, Guard
from hycal.serve.service import Service, UnknownImageError

PAGE = Path(__file__).with_name("page")
MOST_FAULTS, LONGEST_PLACE = 10, 100  # of a malformed request, that are told


def make_app(service: Service, door: Door | None = None) -> ASGIApp:
    """Return the application of one service behind a door; by default that of this machine alone."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        threading.Thread(target=service.warm, name="hycal-warming", daemon=True).start()
        with settling(service.project):
            yield

    app = FastAPI(
        title="hycal",
        version=__version__,
        description="One model: classify images, correct answers, learn, forget, undo.",
        docs_url=None,  # they load scripts from elsewhere; the document itself is at /openapi.json
        redoc_url=None,
        lifespan=lifespan,
    )
    for kind, tell in _TELLING.items():
        app.add_exception_handler(kind, tell)
    embeddings, limits = AnswersToEmbeddings(service), service.limits
    app.include_router(api(service, embeddings))
    app.mount("/", StaticFiles(directory=PAGE, html=True))
    return Guard(
        _short_cut(app, embeddings), door or Door(), most_bytes=limits.request_bytes, most_requests=limits.requests
    )


def _short_cut(app: ASGIApp, embeddings: AnswersToEmbeddings) -> ASGIApp:
    """Return `app` with a shorter way for embeddings, which programs send by the thousand; one with options goes round.

    What the framework does for every request, from finding the route to checking its parameters, takes as long as the
    answer to one row.
    """
    place = PREFIX + EMBEDDINGS
    handlers: dict[Any, Any] = {HTTPException: http_exception_handler, **_TELLING}
    short = Starlette(routes=[Route(place, embeddings.__call__, methods=["POST"])], exception_handlers=handlers)

    async def either(scope: Scope, receive: Receive, send: Send) -> None:
        plain = scope["type"] == "http" and scope["path"] == place and scope["method"] == "POST"
        await (short if plain and not scope["query_string"] else app)(scope, receive, send)

    return either


def _telling(status: int) -> Callable[[Request, Any], Awaitable[Response]]:
    async def tell(request: Request, error: Exception) -> Response:
        return JSONResponse({"detail": serializers.text(str(error))}, status_code=status)

    return tell


async def _tell_faults(request: Request, error: RequestValidationError) -> Response:
    """Tell where a request is malformed and what was expected there, never what it held: JSON may not carry it back."""
    faults = [
        {"loc": [_place(step) for step in fault["loc"]], "msg": fault["msg"], "type": fault["type"]}
        for fault in error.errors()[:MOST_FAULTS]
    ]
    return JSONResponse({"detail": faults}, status_code=422)


def _place(step: str | int) -> str | int:
    return serializers.text(step[:LONGEST_PLACE]) if isinstance(step, str) else step


_TELLING: Mapping[Any, Callable[[Request, Any], Awaitable[Response]]] = {
    RequestValidationError: _tell_faults,
    LockedError: _telling(503),
    StorageError: _telling(507),
    UnknownImageError: _telling(404),
    MovedOnError: _telling(409),
    HyCalError: _telling(400),
}
