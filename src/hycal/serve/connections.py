"""The connections of a server: how many there may be, how long each may wait, how large the head of a request may be.

uvicorn reads requests with httptools, which knows none of these limits. They hold before any application code runs, so
they hold for clients without the token too. Whatever a connection waits for its client to do has a deadline. If there
are too many connections, a new one takes the place of the one whose deadline is nearest: silent connections make room
for clients that ask, and idle ones that were useful before stay longest. A request that is being answered is never cut.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from ipaddress import ip_address
from operator import attrgetter
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


@dataclass(frozen=True)
class ConnectionLimits:
    """The limits of one server on connections."""

    # Open connections, of all clients and of one address.
    connections: int = 800  # below the 1,024 files that a process may usually open
    of_one_address: int = 256
    # Bytes of a request's address and header fields, and number of these fields.
    head_bytes: int = 16 * 2**10
    fields: int = 100
    pipelined: int = 8  # requests that a client may send before the first of them is answered
    first_byte: float = 10  # seconds until the first byte of a new connection
    head: float = 10  # seconds from there until the end of the head
    # Seconds until the next request: longer than clients keep a connection (httpx: 5 s, as uvicorn's default), so that
    # the client closes it. If the server closed it while the next request was on its way, the client would see a reset.
    idle: float = 75
    # A body must bring so many bytes in every so many seconds, unless it ends.
    body_bytes: int = 64 * 2**10
    body: float = 10
    answer: float = 20  # seconds in which a client must take some of an answer that waits to be sent
    linger: float = 2  # seconds for a client to stop sending a body after its request was answered
    tick: float = 1  # seconds between two looks at the deadline


class _RefusedError(Exception):
    """Ends the parsing of a head that is too large."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection within `limits`; another class attribute gives other limits."""

    limits = ConnectionLimits()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.deadline = math.inf
        self.network = ""
        self._head_open = self._body_open = False
        self._moved = False  # what the client must do next is another thing now
        self._head_bytes = self._fields = self._unparsed = 0
        self._body_bytes = self._body_due = 0
        self._unanswered: deque[Any] = deque()  # requests, in their order
        self._refusal = HTTPStatus.BAD_REQUEST, "This is not HTTP/1.1."
        self._ticked = -math.inf
        self._ticker: asyncio.TimerHandle | None = None

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place among the connections, or refuse the client if every other one is being answered."""
        super().connection_made(transport)
        self.network = network(self.client[0]) if self.client else ""
        self._await_client()
        self._tick()
        if not self._make_room():
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "The server has too many connections. Try again soon.")

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back, and tell every request that its client is gone; uvicorn tells the last one only."""
        if self._ticker is not None:
            self._ticker.cancel()
        for cycle in self._unanswered:
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came; a head that goes on beyond the limit ends here, its unfinished field included."""
        if self.transport.is_closing():
            return
        in_body = self._body_open
        super().data_received(data)
        if self._moved:
            self._await_client()
        if not self._head_open:
            self._unparsed = 0
        elif not in_body:  # else the chunk holds the end of a body too; it is short
            self._unparsed += len(data)
            if self._unparsed > self.limits.head_bytes and not self.transport.is_closing():
                self._refuse(*self._too_large())

    def pause_writing(self) -> None:
        """Wait for the client to take some of the answer."""
        super().pause_writing()
        self._await_client()

    def resume_writing(self) -> None:
        """Go on with the answer, or wait for the next request."""
        super().resume_writing()
        self._await_client()

    # What the parser finds

    def on_message_begin(self) -> None:
        """Count the head from zero."""
        if len(self.pipeline) >= self.limits.pipelined:
            self._stop(HTTPStatus.TOO_MANY_REQUESTS, "Too many requests came before the first was answered.")
        super().on_message_begin()
        self._head_open = self._moved = True
        self._head_bytes = self._fields = 0

    def on_url(self, url: bytes) -> None:
        """Count the address."""
        self._head_bytes += len(url)
        if self._head_bytes > self.limits.head_bytes:
            self._stop(*self._too_large())
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header field. A field behind the body comes too late to be one of the head, and is left out."""
        self._fields += 1
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > self.limits.head_bytes or self._fields > self.limits.fields:
            self._stop(*self._too_large())
        if self._head_open:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Wait for the body."""
        self._head_open, self._body_open, self._moved = False, True, True
        self._body_bytes, self._body_due = 0, self.limits.body_bytes
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            self._unanswered.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        """Give the client more time when it has sent enough since the last time."""
        self._body_bytes += len(body)
        super().on_body(body)
        if self._body_bytes >= self._body_due and not self.cycle.response_complete:
            self._body_due = self._body_bytes + self.limits.body_bytes
            self._moved = True

    def on_message_complete(self) -> None:
        """Answer, or wait for the next request if this one was answered already."""
        self._body_open, self._moved = False, True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the end of one that needed no more of its body."""
        self._unanswered.popleft()
        super().on_response_complete()
        self._await_client()

    # Deadlines and refusals

    def _await_client(self) -> None:
        """Set the deadline of what the client must do next; there is none while the server works."""
        self._moved = False
        answered = self.cycle is None or self.cycle.response_complete
        limits = self.limits
        if self.flow.write_paused:
            seconds = limits.answer
        elif self._head_open:
            seconds = limits.head if answered else math.inf
        elif self._body_open:
            seconds = limits.linger if answered else limits.body
        elif self.cycle is None:
            seconds = limits.first_byte
        else:
            # uvicorn closes an idle connection in time. What is left of it then has an answer that nobody takes.
            seconds = limits.idle + limits.linger if answered else math.inf
        self.deadline = self.loop.time() + seconds

    def _tick(self) -> None:
        """At every tick, end the connection if its deadline had passed at the last one.

        What arrived while the loop was busy is read before the next tick, so nobody is cut off for our own delay.
        """
        if self.flow.read_paused and not self.flow.write_paused:  # the client may send, and we do not read
            self._await_client()
        if self.deadline < self._ticked and not self._time_out():
            return
        self._ticked = self.loop.time()
        self._ticker = self.loop.call_later(self.limits.tick, self._tick)

    def _time_out(self) -> bool:
        """Answer a request that is late, and say whether the connection needs another look; drop any other one."""
        started = self.cycle is not None and self.cycle.response_started
        late = self._head_open or (self._body_open and not started)
        if not late or self.flow.write_paused or self.transport.is_closing():
            self.transport.abort()
            return False
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, "The request came too slowly. Send it again.")
        return True

    def _make_room(self) -> bool:
        """Close the connection with the nearest deadline if there are too many; return whether this one has a place."""
        limits, all_open = self.limits, cast("set[BoundedProtocol]", self.connections)
        if len(all_open) <= min(limits.of_one_address, limits.connections):
            return True
        crowd = [one for one in all_open if one.network == self.network and not one.transport.is_closing()]
        if len(crowd) <= limits.of_one_address:
            crowd = [one for one in all_open if not one.transport.is_closing()]
            if len(crowd) <= limits.connections:
                return True
        nearest = min((one for one in crowd if one is not self), key=attrgetter("deadline"))
        if nearest.deadline == math.inf:
            return False
        nearest.transport.abort()
        return True

    def _too_large(self) -> tuple[HTTPStatus, str]:
        most = f"{self.limits.head_bytes:,} bytes or {self.limits.fields} fields"
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"The head of the request is larger than {most}."

    def _stop(self, status: HTTPStatus, message: str) -> None:
        """Stop the parser: it ends with an error, and uvicorn calls `send_400_response`."""
        self._refusal = status, message
        raise _RefusedError(message)

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser stopped at; `msg` is uvicorn's word for it."""
        self._refuse(*self._refusal)

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """Answer without asking the application, and close."""
        body = json.dumps({"detail": message}).encode()
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
        self.deadline = self.loop.time() + self.limits.linger


@lru_cache(maxsize=4096)
def network(address: str) -> str:
    """Return what counts as one address: an IPv4 address, or the first 64 bits of an IPv6 one, which one client has.

    >>> network("192.0.2.1"), network("2001:db8::1"), network("::ffff:192.0.2.1")
    ('192.0.2.1', '20010db800000000', '192.0.2.1')
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    mapped = getattr(found, "ipv4_mapped", None) or found
    return str(mapped) if mapped.version == 4 else mapped.packed[:8].hex()
