"""Open a project and serve it until somebody interrupts."""

from __future__ import annotations

import socket
from urllib.parse import quote

import uvicorn

from hycal.errors import HyCalError
from hycal.parallel.threads import keep_one_blas_thread
from hycal.serve.app import make_app
from hycal.serve.security import Door
from hycal.serve.service import Service

MOST_CONNECTIONS = 800  # open ones, most of them idle: below the 1,024 files that a process may usually open
# Longer than clients keep a connection (httpx: 5 s, which is uvicorn's default too), so that they are the ones to close
# it: one that the server closes may go while the next request is on its way, and the client sees a reset.
SECONDS_IDLE = 75


def address(door: Door, port: int) -> str:
    """Return the link to the page, with the token in it if there is one.

    >>> address(Door(), 8000), address(Door("::1"), 80)
    ('http://127.0.0.1:8000/', 'http://[::1]:80/')
    """
    return f"http://{door.name}:{port}/" + ("" if door.token is None else f"?token={quote(door.token, safe='')}")


def check_free(door: Door, port: int) -> None:
    """Say so if the port cannot be listened on."""
    family = socket.AF_INET6 if ":" in door.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((door.host, port))
        except OSError as error:
            raise HyCalError(
                f"Cannot listen on {door.host}, port {port}: {error.strerror or error}. If another server runs there, "
                "open that one, or choose another port: --port."
            ) from None


def run(service: Service, door: Door, port: int) -> None:
    """Serve until interrupted; then finish what was accepted."""
    keep_one_blas_thread()
    uvicorn.run(
        make_app(service, door),
        host=door.host,
        port=port,
        log_level="warning",
        access_log=False,  # the link with the token must not end in a log
        server_header=False,
        proxy_headers=False,  # nothing here depends on where a request comes from
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=SECONDS_IDLE,
        timeout_graceful_shutdown=10,
    )
