"""The web application: the guard, the API, the page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from hycal._version import __version__
from hycal.errors import HyCalError, StorageError
from hycal.project import LockedError
from hycal.serve.guard import Door, Guard
from hycal.serve.routes import api
from hycal.serve.service import Service, UnknownImageError
from hycal.serve.settling import settling

PAGE = Path(__file__).with_name("page")
_STATUS = ((LockedError, 503), (StorageError, 507), (UnknownImageError, 404), (HyCalError, 400))


def make_app(service: Service, door: Door | None = None) -> ASGIApp:
    """Return the application of one service behind a door; by default that of this machine alone."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
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
    for kind, status in _STATUS:
        app.add_exception_handler(kind, _telling(status))
    app.include_router(api(service))
    app.mount("/", StaticFiles(directory=PAGE, html=True))
    return Guard(app, door or Door(), most_bytes=service.limits.request_bytes)


def _telling(status: int) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def tell(request: Request, error: Exception) -> Response:
        return JSONResponse({"detail": str(error).encode("utf-8", "replace").decode()}, status_code=status)

    return tell
