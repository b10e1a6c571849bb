"""The process: its memory, its port, and the server that runs until somebody interrupts it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import socket
import sys
from urllib.parse import quote

import uvicorn
from starlette.types import ASGIApp

from hycal.errors import HyCalError
from hycal.parallel.threads import keep_one_blas_thread
from hycal.serve.connections import BoundedProtocol
from hycal.serve.requests import LABEL_STUDIO, PREFIX
from hycal.serve.security import Access

_FILES = 4096  # that the process may open: connections are accepted before they are counted
_HEAPS = 2
_WAITING = 2048  # connections that the system accepts before the server does
STARTUP_FAILURE = 3  # exit code, that of uvicorn
_OBJECTS_AT_ONCE = 700, 10, 10  # between searches for garbage
_M_ARENA_MAX = -8  # of glibc's malloc.h


def limit_heaps() -> None:
    """Let all threads of this process, those of libraries too, share two heaps if the allocator is glibc's.

    Call it early: a thread that has a heap keeps it. `hycal.serve.batching` says why few heaps matter.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another allocator, another system
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _HEAPS)


def allow_many_files() -> None:
    """Let this process open some thousand files, if it may: a burst of connections is accepted before it is counted."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # a system without such a limit
        import resource

        soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = min(_FILES, most) if most > 0 else _FILES  # below zero: no limit
        if 0 <= soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def search_garbage_often() -> None:
    """Search garbage as often as Python does by default.

    Commands search rarely, because they end soon. A server would keep the garbage of 50,000 requests, 1 kB each.
    """
    gc.set_threshold(*_OBJECTS_AT_ONCE)


def link(access: Access, port: int) -> str:
    """Return the link to the page, with the token in it if there is one.

    >>> link(Access(), 8000), link(Access("::1"), 80)
    ('http://127.0.0.1:8000/', 'http://[::1]:80/')
    """
    token = "" if access.token is None else f"?token={quote(access.token, safe='')}"
    return f"http://{access.name}:{port}/{token}"


def backend_address(access: Access, port: int) -> str:
    """Return the address that Label Studio is given, with the token as the password: it makes the webhook's of it.

    >>> backend_address(Access(), 8000)
    'http://127.0.0.1:8000/api/label-studio'
    """
    login = "" if access.token is None else f"hycal:{quote(access.token, safe='')}@"
    return f"http://{login}{access.name}:{port}{PREFIX}{LABEL_STUDIO}"


def listen(access: Access, port: int) -> socket.socket:
    """Return a socket that listens on the port; raise a HyCalError if that is not possible."""
    door = socket.socket(socket.AF_INET6 if ":" in access.host else socket.AF_INET, socket.SOCK_STREAM)
    if sys.platform != "win32":  # there, the option would let two servers share a port
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if door.family == socket.AF_INET6:
        door.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        door.bind((access.host, port))
        door.listen(_WAITING)  # at once, or another server could still take the port
    except OSError as error:
        door.close()
        raise HyCalError(
            f"Cannot listen on {access.host}, port {port}: {error.strerror or error}. If another server runs "
            "there, open that one, or choose another port: --port."
        ) from None
    return door


def serve_on(door: socket.socket, app: ASGIApp) -> None:
    """Answer what comes through the socket of `listen` until the process is interrupted; then finish these requests."""
    keep_one_blas_thread()
    allow_many_files()
    search_garbage_often()
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # the link with the token must not end in a log
        server_header=False,
        proxy_headers=False,  # nothing here depends on where a request comes from
        http=BoundedProtocol,
        ws="none",
        timeout_keep_alive=int(BoundedProtocol.limits.idle),
        timeout_graceful_shutdown=10,
    )
    server = uvicorn.Server(config)
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[door])
    if not server.started:
        raise SystemExit(STARTUP_FAILURE)
