"""Connections that mean harm: silent, slow, endless or too many. Others are answered meanwhile."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import uvicorn
from uvicorn.server import ServerState

from hycal.serve.connections import BoundedProtocol, ConnectionLimits

QUICK = ConnectionLimits(first_byte=0.1, head=0.1, body=0.1, answer=0.1, linger=0.1, tick=0.02)
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
PATIENCE = 5


async def reader_of_bodies(scope, receive, send):
    """Answer with the number of bytes that came; `/deaf` answers without reading, `/slow` waits, `/large` is long.

    `/fields` answers with the names of the header fields.
    """
    size, more = 0, scope["path"] != "/deaf"
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    if scope["path"] == "/slow":
        await asyncio.sleep(0.4)
    body = b"x" * 2**25 if scope["path"] == "/large" else str(size).encode()
    if scope["path"] == "/fields":
        body = b" ".join(name for name, _ in scope["headers"])
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def serving(limits: ConnectionLimits, *, idle: float = 75, app=reader_of_bodies):
    """Yield a function that opens a connection to a server with these limits, and the set of its connections."""

    class Protocol(BoundedProtocol):
        pass

    Protocol.limits = limits
    config = uvicorn.Config(app, http=Protocol, ws="none", log_level="critical", timeout_keep_alive=idle)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Protocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0, backlog=1000
    )
    writers: list[asyncio.StreamWriter] = []

    async def connect(content: bytes = b""):
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writers.append(writer)
        writer.write(content)
        return reader, writer

    try:
        yield connect, state.connections
    finally:
        for writer in writers:
            writer.close()
        server.close()
        await asyncio.wait(state.tasks, timeout=PATIENCE) if state.tasks else None


async def status(reader: asyncio.StreamReader) -> int | None:
    """The status of the next answer; None if the server closed the connection without one."""
    try:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return int(head.split()[1])


def run(limits: ConnectionLimits, attack):
    async def main():
        async with serving(limits) as (connect, connections):
            return await attack(connect, connections)

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("begin", "told"),
    [
        (b"", None),
        (b"\r\n\r\n", None),
        (b"GET / HTTP/1.1\r\nHost: local", 408),
        (POST % 1000 + b"x", 408),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", 408),
        (POST.replace(b" / ", b" /deaf ") % 1000, 200),
    ],
    ids=["silent", "blank lines", "half a head", "half a body", "half a chunked body", "answered before its body"],
)
def test_a_client_that_stops_is_let_go(begin, told):
    async def attack(connect, connections):
        reader, _ = await connect(begin)
        found = await status(reader)
        await asyncio.wait_for(reader.read(), PATIENCE)
        return found, len(connections)

    assert run(QUICK, attack) == (told, 0)


@pytest.mark.parametrize("begin", [b"GET / HTTP/1.1\r\nA: ", POST % 10_000, POST.replace(b" / ", b" /deaf ") % 10_000])
def test_a_client_that_trickles_is_let_go(begin):
    async def attack(connect, connections):
        _, writer = await connect(begin)
        began = time.monotonic()
        while connections or time.monotonic() < began + 0.05:
            assert time.monotonic() < began + PATIENCE
            writer.write(b"x")
            await asyncio.sleep(0.01)

    run(QUICK, attack)


def test_a_large_body_may_take_its_time_as_long_as_it_comes():
    async def attack(connect, connections):
        reader, writer = await connect(POST % 500)
        for _ in range(10):  # in all five times as long as a silence may be
            writer.write(b"x" * 50)
            await asyncio.sleep(0.05)
        return await status(reader)

    assert run(replace(QUICK, body_bytes=50), attack) == 200


def test_an_answer_that_takes_long_and_an_idle_connection_are_not_cut():
    async def attack(connect, connections):
        reader, writer = await connect(GET.replace(b" / ", b" /slow "))
        first = await status(reader)
        await asyncio.sleep(0.3)
        writer.write(b"")
        await reader.readexactly(1)
        writer.write(GET)
        return first, await status(reader)

    assert run(QUICK, attack) == (200, 200)


def test_a_client_that_takes_no_answer_is_let_go():
    async def attack(connect, connections):
        _, writer = await connect(GET.replace(b" / ", b" /large "))
        writer.transport.pause_reading()
        began = time.monotonic()
        while not connections or time.monotonic() < began + 0.1:
            await asyncio.sleep(0.01)
        while connections:
            assert time.monotonic() < began + PATIENCE
            await asyncio.sleep(0.01)

    run(QUICK, attack)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /" + b"a" * 20_000,
        b"GET / HTTP/1.1\r\nA: " + b"a" * 20_000,
        b"GET / HTTP/1.1\r\n" + b"a" * 20_000,
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 101 + b"\r\n",
        b"GET / HTTP/1.1\r\n" + (b"A: " + b"a" * 1000 + b"\r\n") * 20 + b"\r\n",
        POST.replace(b"Content-Length: %d", b"Transfer-Encoding: chunked") + b"0\r\n" + b"A: b\r\n" * 101 + b"\r\n",
    ],
)
def test_a_large_head_is_refused(head):
    async def attack(connect, connections):
        reader, _ = await connect(head)
        return await status(reader)

    assert run(ConnectionLimits(), attack) == 431


def test_a_head_at_the_limit_and_a_body_beyond_it_are_fine():
    async def attack(connect, connections):
        fields = b"A: b\r\n" * 90 + b"B: " + b"b" * 15_000 + b"\r\n"
        reader, _ = await connect((POST % 100_000)[:-2] + fields + b"\r\n" + b"x" * 100_000 + GET)
        first = await status(reader)
        size = await reader.readexactly(6)
        return first, size, await status(reader)

    assert run(ConnectionLimits(), attack) == (200, b"100000", 200)


def test_requests_before_the_first_answer_are_limited():
    async def attack(connect, connections):
        reader, _ = await connect(GET.replace(b" / ", b" /slow ") + GET * 100)
        return await status(reader)

    assert run(ConnectionLimits(), attack) == 429


@pytest.mark.parametrize("limits", [ConnectionLimits(of_one_address=20), ConnectionLimits(connections=20)])
@pytest.mark.parametrize("begin", [b"", b"GET / HTTP/1.1\r\nA", POST % 10 + b"x"])
def test_connections_that_wait_make_room_for_one_that_asks(limits, begin):
    async def attack(connect, connections):
        reader, writer = await connect(GET)
        useful = await status(reader)
        await reader.readexactly(1)
        for _ in range(60):
            await connect(begin)
        await asyncio.sleep(0.05)
        asked, _ = await connect(GET)
        writer.write(GET)
        return useful, await status(asked), await status(reader), len(connections) <= 20 + 1

    assert run(limits, attack) == (200, 200, 200, True)


def test_connections_that_are_answered_make_no_room():
    async def attack(connect, connections):
        busy = [await connect(GET.replace(b" / ", b" /slow ")) for _ in range(4)]
        await asyncio.sleep(0.1)
        refused, _ = await connect(GET)
        return await status(refused), [await status(reader) for reader, _ in busy]

    assert run(ConnectionLimits(of_one_address=4), attack) == (503, [200] * 4)


def test_every_request_of_a_connection_learns_that_its_client_is_gone():
    ended = []

    async def wait_for_the_end(scope, receive, send):
        while (await receive())["type"] != "http.disconnect":
            pass
        ended.append(scope["path"])

    async def main():
        async with serving(QUICK, app=wait_for_the_end) as (connect, _):
            _, writer = await connect(GET + GET.replace(b" / ", b" /second "))
            await asyncio.sleep(0.05)
            writer.close()
            began = time.monotonic()
            while not ended and time.monotonic() < began + PATIENCE:
                await asyncio.sleep(0.01)

    asyncio.run(main())
    assert ended == ["/"]


def test_a_field_behind_the_body_is_no_header():
    async def attack(connect, connections):
        head = b"POST /fields HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
        reader, _ = await connect(head + b"0\r\nAuthorization: Bearer token\r\n\r\n")
        await status(reader)
        return await asyncio.wait_for(reader.read(100), PATIENCE)

    assert run(QUICK, attack) == b"host transfer-encoding"
