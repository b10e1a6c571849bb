"""Clients that cost little: one asyncio loop, kept connections, prepared requests."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.load.server import Served

_CORRECTING = 0.05  # seconds between an answer and the next correction


@dataclass
class Tally:
    """What clients saw: seconds of each answered request, how many were refused, how often a connection was closed."""

    seconds: list[float] = field(default_factory=list)
    refused: int = 0
    reopened: int = 0

    def add(self, other: Tally) -> None:
        """Count what others saw as well."""
        self.seconds += other.seconds
        self.refused += other.refused
        self.reopened += other.reopened

    def quantile(self, share: float) -> float:
        """Milliseconds within which a share of the answers came."""
        ordered = sorted(self.seconds)
        return 1e3 * ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def request(path: str, body: bytes, kind: str) -> bytes:
    """Return a POST request, ready to be sent."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def json_request(path: str, value: object) -> bytes:
    """Return a POST request with a JSON body."""
    return request(path, json.dumps(value).encode(), "application/json")


async def ask(port: int, requests: Sequence[bytes], tally: Tally, *, until: float, pause: float = 0.0) -> None:
    """Send the requests again and again, each after the answer to the last, until it is time.

    A server closes a kept connection after some idle seconds, which a client that was held up may meet while it sends.
    As browsers do, it then sends the request once more on a new connection; there, a failure is one.
    """
    number, kept = 0, await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < until:
        content = requests[number % len(requests)]
        began = time.perf_counter()
        try:
            status = await _answered(kept, content)
        except (ConnectionError, asyncio.IncompleteReadError):
            if not number:
                raise
            tally.reopened += 1
            kept[1].close()
            kept = await asyncio.open_connection("127.0.0.1", port)
            status = await _answered(kept, content)
        if status == 200:
            tally.seconds.append(time.perf_counter() - began)
        else:
            tally.refused += 1
        number += 1
        await asyncio.sleep(pause)
    kept[1].close()


async def _answered(kept: tuple[asyncio.StreamReader, asyncio.StreamWriter], content: bytes) -> int:
    reader, writer = kept
    writer.write(content)
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines if line)
    await reader.readexactly(int(fields["content-length"]))
    return int(first.split()[1])


async def load(
    server: Served, requests: Sequence[bytes], changes: Sequence[bytes], *, clients: int, seconds: float
) -> tuple[Tally, Tally]:
    """Return what the clients saw, and what the correcting one did, if there is anything to correct."""
    tally, changing = Tally(), Tally()
    until = time.monotonic() + seconds
    correcting = [ask(server.port, changes, changing, until=until, pause=_CORRECTING)] if changes else []
    await asyncio.gather(*correcting, *(ask(server.port, requests, tally, until=until) for _ in range(clients)))
    return tally, changing
