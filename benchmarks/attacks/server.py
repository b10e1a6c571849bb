"""Strangers against a running server: silence, slowness, size, and requests of other web sites."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from benchmarks.attacks.case import Case
from benchmarks.attacks.target import ask, at_once, attacked, upload

SILENT, TRICKLING, BODIES = 800, 96, 4
_PATIENCE = 16  # seconds after which every connection that stopped, or trickles, must be closed
_HEAD = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: %s\r\n"
_FORM = b"multipart/form-data; boundary=cut"
_FILE = b'--cut\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n'
_CHUNK = 2**20
_CUT = 0  # in the place of a status: the connection was closed


def hold(folder: Path, *, connections: int, begin: bytes, trickle: bytes) -> tuple[bool, str]:
    """Open connections, begin something on each, go on with it slowly or not at all, and wait until all are closed."""
    with attacked(folder) as watched, ExitStack() as stack:
        doors = []
        for _ in range(connections):
            door = stack.enter_context(socket.create_connection(("127.0.0.1", watched.server.port), 10))
            door.setblocking(False)
            doors.append(door)
            with suppress(OSError):
                door.sendall(begin)
        began, others = time.monotonic(), set()
        while doors and time.monotonic() < began + _PATIENCE:
            others.add(ask(watched.server.port, "GET", "/api/info")[0])
            doors = [door for door in doors if _open(door, trickle)]
            time.sleep(0.3)
    answered = "other requests were answered" if others == {200} else f"other requests got {sorted(others)}"
    left = f"{len(doors)} of {connections} connections left after {time.monotonic() - began:.0f} s"
    return watched.held and others == {200} and not doors, f"{watched}; {answered}; {left}"


def _open(door: socket.socket, trickle: bytes) -> bool:
    """Send a little more; return whether the server still listens."""
    try:
        door.sendall(trickle)
        return bool(door.recv(1000))
    except BlockingIOError:
        return True
    except OSError:
        return False


def large_head(folder: Path, *, piece: bytes, megabytes: int) -> tuple[bool, str]:
    """Send a head that does not end; the server must stop it early."""
    with attacked(folder) as watched:
        sent = _send_head(watched.server.port, piece, megabytes * 2**20)
    return watched.held and sent < 32 * 2**20, f"{watched}; stopped after {sent / 2**20:.0f} MB of {megabytes}"


def _send_head(port: int, piece: bytes, most: int) -> int:
    """Send a head until the server closes the connection; return how many bytes it took."""
    sent, block = 0, piece * (_CHUNK // len(piece))
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 30) as door:
        door.sendall(b"GET / HTTP/1.1\r\n" + (b"" if b"\r\n" in piece else b"A: "))
        while sent < most:
            door.sendall(block)
            sent += len(block)
    return sent


def large_bodies(folder: Path, *, path: str, begin: bytes, piece: bytes, most: int) -> tuple[bool, str]:
    """Send several hostile bodies at once, of no stated length; each must be refused, or cut if it goes on."""
    statuses: list[int] = []

    def send(port: int) -> None:
        try:
            statuses.append(_send_chunked(port, path, begin, piece, most))
        except ConnectionError:
            statuses.append(_CUT)

    with attacked(folder) as watched:
        at_once(partial(send, watched.server.port), BODIES)
    refused = len(statuses) == BODIES and set(statuses) <= {400, 413, 503, _CUT}
    return watched.held and refused, f"{watched}; answers {sorted(statuses)}"


def _send_chunked(port: int, path: str, begin: bytes, piece: bytes, most: int) -> int:
    """Send a body without its length, up to `most` bytes or until the server closes; return the status."""
    with socket.create_connection(("127.0.0.1", port), 60) as door:
        door.sendall(_HEAD % (path.encode(), b"application/json") + b"Transfer-Encoding: chunked\r\n\r\n")
        with suppress(ConnectionError):  # the server answered and closed; what it said can still be read
            door.sendall(_chunk(begin))
            block = _chunk(piece * (_CHUNK // len(piece)))  # made once: the client that watches needs this process too
            for _ in range(most // _CHUNK):
                door.sendall(block)
            door.sendall(b"0\r\n\r\n")
        answer = door.recv(1000).split()
        return int(answer[1]) if answer else _CUT


def _chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


def cross_site(folder: Path) -> tuple[bool, str]:
    """Ask as a browser does for a page of another site."""
    with attacked(folder) as watched:
        got = {
            path: ask(watched.server.port, "GET", f"/api/{path}", headers={"Sec-Fetch-Site": "cross-site"})[0]
            for path in ("accuracy", "map", "classes", "info")
        }
        own = ask(watched.server.port, "GET", "/api/accuracy", headers={"Sec-Fetch-Site": "same-origin"})[0]
    return watched.held and set(got.values()) == {403} and own == 200, f"{got}; own page {own}"


def full_temporary_folder(folder: Path) -> tuple[bool, str]:
    """Send an upload that the server cannot keep: the system lets it write no file of more than 2 MB."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2**21, 2**21))"
    with attacked(folder, first=limit) as watched:
        body, headers = upload(b"x" * 2**23)
        status, told = ask(watched.server.port, "POST", "/api/images", body, headers)
    return watched.held and status == 507, f"{status}: {told.decode()[:120]}"


def heads(folder: Path) -> tuple[bool, str]:
    """Ask for heads only."""
    with attacked(folder) as watched:
        port = watched.server.port
        got = {path: ask(port, "HEAD", path) for path in ("/", "/api/info", "/api/health", "/openapi.json")}
    sound = all(status == 200 and not body for status, body in got.values())
    return watched.held and sound, str({path: status for path, (status, _) in got.items()})


_ROWS = "/api/classify-embeddings"
_MANY = 64 * 2**20
CASES: tuple[Case, ...] = (
    Case(
        1,
        f"{SILENT} silent connections: others are answered, and the silent ones are closed",
        partial(hold, connections=SILENT, begin=b"", trickle=b""),
    ),
    Case(
        1,
        f"{TRICKLING} heads that trickle: the same",
        partial(hold, connections=TRICKLING, begin=b"GET / HTTP/1.1\r\nA: ", trickle=b"x"),
    ),
    Case(
        1,
        f"{TRICKLING} bodies that trickle: the same",
        partial(
            hold,
            connections=TRICKLING,
            begin=_HEAD % (b"/api/images", _FORM) + b"Content-Length: 9999999\r\n\r\n" + _FILE,
            trickle=b"x",
        ),
    ),
    Case(1, "60 MB of short header fields are refused", partial(large_head, piece=b"A: b\r\n", megabytes=60)),
    Case(1, "a header field of 250 MB is refused", partial(large_head, piece=b"x" * 1024, megabytes=250)),
    Case(
        2,
        "64 MB of empty rows are refused before they are parsed",
        partial(large_bodies, path=_ROWS, begin=b'{"rows":[', piece=b"[],", most=_MANY),
    ),
    Case(
        2,
        "50 MB of one-number rows, within the limit of bytes, are refused before they are parsed",
        partial(large_bodies, path=_ROWS, begin=b'{"rows":[', piece=b"[0],", most=50 * 2**20),
    ),
    Case(
        2,
        "64 MB of nested lists are refused before they are parsed",
        partial(large_bodies, path=_ROWS, begin=b'{"rows":', piece=b"[", most=_MANY),
    ),
    Case(
        2,
        "an undo takes kilobytes",
        partial(large_bodies, path="/api/undo", begin=b'{"only_if":', piece=b"[],", most=_MANY),
    ),
    Case(
        2,
        "labels to learn are parsed up to the first fault",
        partial(large_bodies, path="/api/learn", begin=b'{"labels":{', piece=b'"a":1,', most=9 * 2**20),
    ),
    Case(18, "other web sites have nothing computed", cross_site),
    Case(19, "a full folder of temporary files is 507", full_temporary_folder),
    Case(19, "HEAD works where GET does", heads),
)
