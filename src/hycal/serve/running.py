"""Open a project and serve it until somebody interrupts."""

from __future__ import annotations

import uvicorn

from hycal.serve.app import make_app
from hycal.serve.guard import Door
from hycal.serve.service import Service

MOST_AT_ONCE = 96  # connections: each may hold one request of the largest size in memory


def address(door: Door, port: int) -> str:
    """Return the link to the page, with the token in it if there is one.

    >>> address(Door(), 8000), address(Door("::1"), 80)
    ('http://127.0.0.1:8000/', 'http://[::1]:80/')
    """
    host = f"[{door.host}]" if ":" in door.host else door.host
    return f"http://{host}:{port}/" + ("" if door.token is None else f"?token={door.token}")


def run(service: Service, door: Door, port: int) -> None:
    """Serve until interrupted; then finish what was accepted."""
    uvicorn.run(
        make_app(service, door),
        host=door.host,
        port=port,
        log_level="warning",
        access_log=False,  # the link with the token must not end in a log
        server_header=False,
        limit_concurrency=MOST_AT_ONCE,
        timeout_graceful_shutdown=10,
    )
