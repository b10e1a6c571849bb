"""Metrics in the text format of Prometheus: requests by route and status, their time, images, the model.

No label holds what a client or a model says: routes are templates such as /api/thumbnails/{image}, and a method or path
that is not one of ours is "other". If `PROMETHEUS_MULTIPROC_DIR` names a folder, processes count in it together.
"""

from __future__ import annotations

import contextlib
import os
import time

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hycal.serve.requests import EMBEDDINGS, PREFIX
from hycal.serve.service import Service

SHARED = "PROMETHEUS_MULTIPROC_DIR"  # a name of prometheus-client
_METHODS = frozenset({"GET", "HEAD", "POST"})
_PAGE = "page"  # a file of the page
_OTHER = "other"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The counters of one server, or of all processes that share a folder."""

    def __init__(self, service: Service) -> None:
        self._service = service
        own = CollectorRegistry()
        self._registry = own
        if os.environ.get(SHARED):
            self._registry = CollectorRegistry()
            MultiProcessCollector(self._registry)  # type: ignore[no-untyped-call]
        self._requests = Counter(
            "hycal_requests", "Requests that were answered.", ["method", "route", "status"], registry=own
        )
        self._seconds = Histogram(
            "hycal_request_seconds", "Time from head to end.", ["route"], registry=own, buckets=_SECONDS
        )
        self._open = Gauge("hycal_requests_open", "Received or waiting.", registry=own, multiprocess_mode="livesum")
        self._images = Counter("hycal_images_encoded", "Images that the encoder embedded.", registry=own)
        self._classes, self._learned, self._bytes = (
            Gauge(f"hycal_model_{name}", text, registry=own, multiprocess_mode="mostrecent")
            for name, text in (
                ("classes", "Classes of the model."),
                ("images", "Images that the model learned."),
                ("bytes", "Bytes of the model's state in memory."),
            )
        )
        service.on_encoded = self._images.inc

    def watching(self, app: ASGIApp) -> ASGIApp:
        """Return `app`, with every request counted."""

        async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            status, began = 500, time.perf_counter()

            async def sending(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            self._open.inc()
            try:
                await app(scope, receive, sending)
            finally:
                self._open.dec()
                route = _route(scope, status)
                method = scope["method"] if scope["method"] in _METHODS else _OTHER
                self._requests.labels(method, route, str(status)).inc()
                self._seconds.labels(route).observe(time.perf_counter() - began)

        return dispatch

    async def respond(self, request: Request) -> Response:
        """Return all metrics."""
        state = self._service.project.state  # the last one that was read: a scrape waits for no file
        self._classes.set(len(state.labels))
        self._learned.set(state.n_images)
        self._bytes.set(state.classifier.nbytes_)
        return Response(generate_latest(self._registry), headers={"content-type": CONTENT_TYPE_LATEST})


def count_as(number: int) -> None:
    """Let this process count as the worker of that number, and go on from what an earlier one of that number counted.

    Files by number instead of by process: a server whose workers die again and again does not fill the disk.
    """
    values.ValueClass = values.MultiProcessValue(process_identifier=lambda: number)  # type: ignore[no-untyped-call]


def forget_open_requests(number: int) -> None:
    """Take the open requests of a worker that ended out of the metrics; what it counted stays."""
    with contextlib.suppress(OSError):
        mark_process_dead(number)  # type: ignore[no-untyped-call]


def _route(scope: Scope, status: int) -> str:
    """Return the template of the route that answered; "page" for a file that there is."""
    path = getattr(scope.get("route"), "path", None)
    if path is not None:
        return str(path)
    if scope["path"] == PREFIX + EMBEDDINGS:  # its short cut passes by the framework
        return PREFIX + EMBEDDINGS
    return _PAGE if status in (200, 304) else _OTHER
