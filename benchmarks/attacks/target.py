"""The server that is attacked: `hycal serve` in a process of its own, watched by a client that does nothing wrong."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.load.server import Served, served
from benchmarks.synthetic import many_classes
from hycal.encoders import load_encoder
from hycal.project.encoder import encoder_space

MOST_SECONDS = 1.0  # for an answer to /api/health, whatever else happens
MOST_MEGABYTES = 400  # that the server may hold beside what it had
_PAUSE = 0.1


@dataclass
class Watched:
    """What the client that does nothing wrong saw, and the memory of the server meanwhile."""

    server: Served
    seconds: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    before: float = 0.0
    peak: float = 0.0

    @property
    def held(self) -> bool:
        """Whether every answer came, and in time, and the memory stayed within the limit."""
        in_time = bool(self.seconds) and max(self.seconds) < MOST_SECONDS
        return in_time and not self.problems and self.peak - self.before < MOST_MEGABYTES

    def __str__(self) -> str:
        slowest = max(self.seconds, default=float("nan"))
        told = f"health answered {len(self.seconds)} times, slowest {slowest:.2f} s; {self.peak - self.before:+.0f} MB"
        return f"{told}; {self.problems[0]}" if self.problems else told

    def look(self) -> None:
        """Ask once, on a new connection."""
        began = time.monotonic()
        try:
            status, _ = ask(self.server.port, "GET", "/api/health")
            if status != 200:
                self.problems.append(f"health answered {status}")
            self.seconds.append(time.monotonic() - began)
        except OSError as error:
            self.problems.append(f"no answer from health: {error}")
        self.peak = max(self.peak, self.server.megabytes)


@contextmanager
def attacked(folder: Path, *, first: str = "") -> Iterator[Watched]:
    """Run a server with a small model, and watch it until the end of the block; `first` as for `served`."""
    path = folder / "model.hycal"
    many_classes(path, encoder_space(load_encoder("builtin")), classes=20, shots=4).close()
    with served(path, first=first) as server:
        watched = Watched(server, before=server.megabytes)
        over = threading.Event()

        def watch() -> None:
            while not over.wait(_PAUSE):
                watched.look()

        client = threading.Thread(target=watch)
        client.start()
        try:
            yield watched
        finally:
            over.set()
            client.join()
            watched.look()


def at_once(work: Callable[[], None], count: int) -> None:
    """Call `work` in so many threads at the same time, and wait for all."""
    with ThreadPoolExecutor(count) as pool:
        for future in [pool.submit(work) for _ in range(count)]:
            future.result()


def ask(
    port: int, method: str, path: str, body: bytes | Iterator[bytes] = b"", headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    """Return status and body of the answer to one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body or None, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def upload(*contents: bytes) -> tuple[bytes, dict[str, str]]:
    """Return the body of a request that sends image files, and its headers."""
    head = b'--cut\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n'
    body = b"".join(head + content + b"\r\n" for content in contents) + b"--cut--\r\n"
    return body, {"Content-Type": "multipart/form-data; boundary=cut"}
