"""Strangers: other hosts, other sites, no token, too much, and files that mean harm."""

from __future__ import annotations

import asyncio
import errno
import io
import struct
import sys
import tempfile
import zlib

import numpy as np
import pytest
from PIL import Image
from starlette.responses import Response

from hycal.errors import HyCalError
from hycal.serve.app import make_app
from hycal.serve.requests import body_limits
from hycal.serve.security import Access, Guard
from hycal.serve.server import link
from hycal.serve.service import Limits
from tests.support.encoders import CrashingEncoder
from tests.support.services import client_of, files, new_service, picture, teach

TOKEN = "0123456789abcdef-token"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil", ""])
def test_names_that_are_not_ours_learn_nothing(taught, host):
    assert taught.get("/api/classes", headers={"host": host}).status_code == 403
    assert taught.get("/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1:1234", "[::1]:8000"])
def test_names_of_this_machine_do(taught, host):
    assert taught.get("/api/classes", headers={"host": host}).status_code == 200


def test_two_names_are_none(taught):
    assert taught.get("/api/classes", headers=[("host", "localhost"), ("host", "evil.example")]).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.2", "::1"])
def test_the_link_that_is_printed_opens_the_page(tmp_path, host):
    access = Access(host)
    with client_of(new_service(tmp_path / "m.hycal"), access) as client:
        assert client.get(link(access, 8000)).status_code == 200
        assert client.get("/", headers={"host": "127.0.0.3:8000"}).status_code == 403


WRITES = ["learn", "correct", "rename", "forget", "undo", "images", "classify", "answers", "classify-embeddings"]


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:9999"},
        {"origin": "http://localhost:8000.evil.example"},
        {"origin": "app://localhost:8000"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": "http://localhost:8000"},
    ],
)
def test_other_sites_change_nothing(taught, headers):
    before = taught.get("/api/info").json()
    for path in WRITES:
        assert taught.post(f"/api/{path}", headers=headers).status_code == 403, path
    assert taught.get("/api/info").json() == before


READS = ["info", "classes", "examples?label=colour/red", "accuracy", "map", "history", "thumbnails/00"]


@pytest.mark.parametrize("headers", [{"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}])
def test_other_sites_have_nothing_computed(taught, service, headers, monkeypatch):
    monkeypatch.setattr(service, "advice", lambda state: pytest.fail("computed"))
    for path in READS:
        assert taught.get(f"/api/{path}", headers=headers).status_code == 403, path
        assert taught.head(f"/api/{path}", headers=headers).status_code == 403, path
    assert taught.get("/", headers=headers).status_code == 200, "a link to the page, from anywhere"


def test_our_own_page_may(taught):
    headers = {"origin": "http://localhost:8000", "sec-fetch-site": "same-origin"}
    assert taught.post("/api/undo", headers=headers).status_code == 200


def test_other_addresses_need_a_good_token():
    with pytest.raises(HyCalError, match="no token was given"):
        Access("0.0.0.0")
    with pytest.raises(HyCalError, match="16 ASCII characters"):
        Access("0.0.0.0", "short")
    assert len(Access.safe("0.0.0.0", None).token) >= 32
    assert Access.safe("127.0.0.1", None).token is None


@pytest.fixture
def locked(tmp_path):
    with client_of(new_service(tmp_path / "m.hycal"), Access("0.0.0.0", TOKEN), follow_redirects=False) as client:
        yield client


def test_nothing_without_the_token(locked):
    for path in ("/", "/main.js", "/api/info", "/api/classes", "/api/thumbnails/00", "/openapi.json"):
        assert locked.get(path).status_code == 401
    assert locked.post("/api/undo").status_code == 401
    assert locked.get("/api/info", headers={"authorization": f"Bearer {TOKEN}x"}).status_code == 401
    assert locked.get("/api/info", headers={"authorization": "Bearer ä".encode()}).status_code == 401
    assert locked.get("/api/info", headers={"cookie": "hycal-8000=;;\x01="}).status_code == 401
    assert locked.get("/?token=wrong").status_code == 401
    assert locked.get("/api/health").json()["status"] == "ok"


def test_the_token_as_header_or_cookie(locked):
    assert locked.get("/api/info", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    entered = locked.get(f"/?token={TOKEN}")
    assert entered.status_code == 303
    assert entered.headers["location"] == "/"
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert locked.get("/api/info").status_code == 200  # the client keeps the cookie
    assert locked.post("/api/undo", headers={"origin": "http://evil.example"}).status_code == 403


def test_with_a_token_a_proxy_may_pass_its_own_name_on(tmp_path):
    access = Access("127.0.0.1", TOKEN)
    headers = {"host": "photos.example", "origin": "https://photos.example", "authorization": f"Bearer {TOKEN}"}
    with client_of(new_service(tmp_path / "m.hycal"), access) as client:
        assert client.get("/api/info", headers=headers).status_code == 200
        assert client.post("/api/undo", headers=headers).status_code == 400, "nothing to undo"
        assert client.get("/api/info", headers={"host": "photos.example"}).status_code == 401


def test_a_token_of_any_characters_opens_by_the_printed_link(tmp_path):
    access = Access("localhost", 'a+b&c#d%41 e=f;"g\\h?/ij')
    with client_of(new_service(tmp_path / "m.hycal"), access) as client:
        assert client.get(link(access, 8000)).status_code == 200
        assert client.get("/api/info").status_code == 200  # by the cookie


@pytest.mark.parametrize("other", ['prefs={"theme":"dark"}', "name=Ren\xe9", "a b=c", "@=1"])
def test_cookies_of_other_programs_on_the_host_do_no_harm(locked, other):
    headers = {"cookie": f"{other}; hycal-8000={TOKEN}".encode("latin-1")}
    assert locked.get("/api/info", headers=headers).status_code == 200


def test_answers_forbid_everything_from_elsewhere(taught):
    for path in ("/", "/main.js", "/api/info", "/nothing"):
        headers = taught.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


def test_the_page_is_whole_and_names_no_other_host(client):
    page = client.get("/").text
    assert '<script type="module" src="main.js">' in page
    for name in (
        "main",
        "ask",
        "card",
        "teach",
        "classes",
        "map",
        "history",
        "store",
        "api",
        "dom",
        "files",
        "escaping",
    ):
        script = client.get(f"/{name}.js")
        assert script.status_code == 200
        assert "http://" not in script.text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in script.text
    for path in ("/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "/page/../../app.py", "//etc/passwd"):
        assert client.get(path).status_code in (400, 404)


# Uploads


@pytest.fixture
def small(tmp_path):
    service = new_service(
        tmp_path / "small.hycal", request_bytes=60_000, image_bytes=20_000, image_pixels=10_000, images=4, rows=10
    )
    with client_of(service) as client:
        teach(client)
        yield client


def test_limits(small):
    assert small.post("/api/images", files=files(*[picture("red")] * 5)).status_code == 400
    assert small.post("/api/images", files=files(b"x" * 70_000)).status_code == 413
    told = small.post("/api/images", files=files(picture("red", side=96), picture("red", side=101))).json()["images"]
    assert "bytes; the limit is 20,000" in told[0]["problem"]
    assert small.post("/api/classify-embeddings", json={"rows": [[1.0] * 48] * 11}).status_code == 400


def test_a_body_without_a_length_ends_at_the_limit(small):
    def endless():
        for _ in range(1000):
            yield b"x" * 1000

    answer = small.post("/api/classify-embeddings", content=endless())
    assert answer.status_code == 413


SMALL_ROUTES = ["undo", "rename", "forget", "correct", "nothing"]


@pytest.mark.parametrize("route", SMALL_ROUTES)
def test_routes_that_need_little_take_little(taught, route):
    """Nested JSON of a few megabytes would stop everybody while it is parsed."""
    kind = {"content-type": "application/json"}
    assert taught.post(f"/api/{route}", content=b"[" * 10_000, headers=kind).status_code == 413

    def endless():
        for _ in range(1000):
            yield b"[" * 1000

    assert taught.post(f"/api/{route}", content=endless(), headers=kind).status_code in (404, 405, 413)


def test_bodies_are_limited_by_what_a_route_can_hold():
    most = body_limits(Limits(), 512)
    assert most("/api/undo", "application/json") < 10_000
    assert most("/api/answers", "application/json") < 100_000
    assert most("/api/learn", "application/json") < 2**24
    assert most("/api/classify-embeddings", "application/octet-stream") < 4096 * 512 * 4 + 20_000
    assert most("/api/classify-embeddings", "application/json") < 4096 * 512 * 27
    assert most("/api/images", "multipart/form-data") == 64 * 2**20


class Asked:
    """One request to an ASGI application, whose body comes when it is told to."""

    def __init__(self, app, method: str, path: str) -> None:
        self.body: asyncio.Queue = asyncio.Queue()
        scope = {"type": "http", "method": method, "path": path, "query_string": b""}
        self.sent: list[dict] = []
        headers = [(b"host", b"localhost:8000")]
        self.task = asyncio.create_task(app({**scope, "headers": headers}, self.body.get, self.send))

    async def send(self, message) -> None:
        self.sent.append(message)

    def put(self, body: bytes, *, more: bool) -> None:
        self.body.put_nowait({"type": "http.request", "body": body, "more_body": more})

    async def status(self) -> int:
        await self.task
        return self.sent[0]["status"]


async def whole_body(scope, receive, send) -> None:
    while (await receive()).get("more_body"):
        pass
    await Response("done")(scope, receive, send)


def test_only_so_many_requests_are_answered_at_once_and_the_others_are_told():
    async def crowd() -> tuple[list[int], int, int]:
        held = asyncio.Event()

        async def slow(scope, receive, send):
            await held.wait()
            await Response("done")(scope, receive, send)

        guard = Guard(slow, Access(), most_bytes=lambda path, kind: 1, most_held=1, most_requests=2)
        inside = [Asked(guard, "GET", "/api/info") for _ in range(2)]
        await asyncio.sleep(0)
        refused = await Asked(guard, "GET", "/api/info").status()
        held.set()
        healthy = await Asked(guard, "GET", "/api/health").status()
        return [await one.status() for one in inside], refused, healthy

    assert asyncio.run(crowd()) == ([200, 200], 503, 200)


def test_bodies_that_trickle_take_no_place():
    async def crowd() -> tuple[int, list[int]]:
        guard = Guard(whole_body, Access(), most_bytes=lambda path, kind: 10, most_held=99, most_requests=1)
        trickling = [Asked(guard, "POST", "/api/images") for _ in range(5)]
        for one in trickling:
            one.put(b"x", more=True)
        await asyncio.sleep(0)
        quick = Asked(guard, "POST", "/api/undo")
        quick.put(b"x", more=False)
        asked = await quick.status()
        for one in trickling:
            one.put(b"x", more=False)
        return asked, [await one.status() for one in trickling]

    assert asyncio.run(crowd()) == (200, [200] * 5)


def test_all_bodies_together_are_limited_and_small_ones_pass():
    half = 10 * 2**20

    async def crowd() -> tuple[int, int, int, int]:
        guard = Guard(whole_body, Access(), most_bytes=lambda path, kind: 2 * half, most_held=2 * half, most_requests=9)
        first, second, small = (Asked(guard, "POST", "/api/images") for _ in range(3))
        first.put(b"x" * half, more=True)
        second.put(b"x" * half, more=True)
        second.put(b"x", more=False)
        refused = await second.status()
        small.put(b"x", more=False)
        passed = await small.status()
        first.put(b"x", more=False)
        again = Asked(guard, "POST", "/api/images")
        again.put(b"x" * half, more=False)
        return refused, passed, await first.status(), await again.status()

    assert asyncio.run(crowd()) == (503, 200, 200, 200)


def test_a_client_that_leaves_while_it_sends_is_no_error(service, caplog):
    async def leave() -> list[dict]:
        one = Asked(make_app(service), "POST", "/api/classify-embeddings")
        one.put(b"{", more=True)
        one.body.put_nowait({"type": "http.disconnect"})
        await one.task
        return one.sent

    asyncio.run(leave())
    assert not caplog.records


@pytest.mark.parametrize("content", [200_000, 2_000_000])
def test_a_full_folder_of_temporary_files_is_no_fault_of_the_request(taught, monkeypatch, content):
    """Uploads of more than a megabyte wait in a file."""

    def full(self, *given):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "rollover", full)
    told = taught.post("/api/images", files=files(b"x" * content))
    if content < 2**20:
        assert told.status_code == 200
    else:
        assert told.status_code == 507
        assert "No space left on device" in told.json()["detail"]


LONE = '"\\ud800"'  # half of a pair: JSON has an escape for it, and UTF-8 has not


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("forget", f'{{"name": {LONE}}}'),
        ("forget", f"{{{LONE}: 1}}"),
        ("forget", '{"name": NaN}'),
        ("forget", '{"image": -Infinity}'),
        ("rename", f'{{"old": {LONE}, "new": "a"}}'),
        ("rename", f'{{"old": "colour/red", "new": {LONE}}}'),
        ("correct", '{"image": "IMAGE", "label": "colour/\\ud800"}'),
        ("learn", '{"labels": {"IMAGE": "colour/\\ud800"}}'),
        ("learn", f'{{"labels": {{{LONE}: "colour/red"}}}}'),
        ("answers", f'{{"images": [{LONE}, Infinity]}}'),
        ("undo", f'{{"only_if": {LONE}}}'),
        ("classify-embeddings", f'{{"rows": [[{LONE}]]}}'),
        ("classify-embeddings", '{"rows": [[NaN]]}'),
    ],
)
def test_json_that_cannot_be_told_again_is_refused_all_the_same(taught, route, body):
    image = taught.post("/api/images", files=files(picture("green", 1))).json()["images"][0]["image"]
    before = taught.get("/api/info").json()
    kind = {"content-type": "application/json"}
    told = taught.post(f"/api/{route}", content=body.replace("IMAGE", image), headers=kind)
    assert told.status_code in (400, 422), told.text
    assert told.json()["detail"]
    assert taught.get("/api/info").json() == before


@pytest.mark.parametrize(
    "body",
    [{"name": "x" * 7_000}, {"x" * 7_000: 1}, {"name": ["x"] * 1_500}, {str(number): 1 for number in range(800)}],
)
def test_what_is_wrong_is_told_and_not_repeated(small, body):
    told = small.post("/api/forget", json=body)
    assert told.status_code == 422
    assert len(told.content) < 4_000
    first = told.json()["detail"][0]
    assert first["loc"][0] == "body"
    assert first["msg"]


def bomb(side: int) -> bytes:
    """A PNG of side x side pixels in a few bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(b"\0" * 100)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def truncated() -> bytes:
    return picture("red", 1, side=64)[:200]


def script() -> bytes:
    return b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


def strip() -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.zeros((1, 5000), np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize("content", [b"", b"junk", bomb(60_000), bomb(9_000), truncated(), script(), strip()])
def test_files_that_mean_harm_are_told_and_the_others_are_seen(taught, content):
    told = taught.post("/api/classify", files=files(content, picture("red", 9)))
    assert told.status_code == 200
    bad, good = told.json()["answers"]
    assert bad["problem"]
    assert bad["image"] is None
    assert bad["candidates"] == []
    assert good["candidates"][0]["label"] == "colour/red"


@pytest.mark.skipif(sys.platform == "win32", reason="processes have no memory limit here")
def test_a_crash_of_a_decoder_costs_one_answer(tmp_path):
    with client_of(new_service(tmp_path / "m.hycal", encoder=CrashingEncoder())) as client:
        teach(client)
        told = client.post("/api/classify", files=files(picture("green", 1), picture("red", 9)))
        bad, good = told.json()["answers"]
        assert bad["problem"] == "the decoder crashed (SIGSEGV)"
        assert good["candidates"][0]["label"] == "colour/red"


NAMES = ["../../etc/passwd", "/etc/passwd", "C:\\boot.ini", "a\x00b.png", "\x1b[31m.png", "é.png"]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_shown_and_never_opened(tmp_path, taught, service, name):
    sent = taught.post("/api/images", files=files(picture("green", 5), name=name)).json()["images"][0]
    taught.post("/api/learn", json={"labels": {sent["image"]: "colour/green"}})
    assert {path.name for path in tmp_path.iterdir()} == {"m.hycal", "m.hycal.journal"}
    (example,) = service.state.classes["colour/green"].examples
    assert example.name.isprintable()
    assert taught.get("/api/examples?label=colour/green").json()["examples"][0]["name"] == example.name
