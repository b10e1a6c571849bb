"""The recipe for nginx in docs/how-to/proxy.md, tried with a real nginx in front of a real server."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
import uvicorn

from hycal.serve.app import make_app
from hycal.serve.connections import BoundedProtocol
from hycal.serve.security import Access
from tests.support.services import new_service

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
RECIPE = Path(__file__).parents[2] / "docs" / "how-to" / "proxy.md"
TOKEN = "0123456789abcdef-token"
NAME = "photos.example"
PATIENCE = 20

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed; on Debian: apt-get install nginx-light")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        return door.getsockname()[1]


def wait_for(port: int) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            assert time.monotonic() < until, "nobody listens"
            time.sleep(0.02)


def configuration(folder: Path, port: int, upstream: int) -> str:
    """The recipe as it stands, but for its port, its certificate, and ten seconds that would be long for a test."""
    recipe = re.search(r"```nginx\n(.*?)```", RECIPE.read_text(), re.DOTALL).group(1)
    recipe = recipe.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};").replace("10s;", "1s;")
    recipe = re.sub(r"ssl_certificate\w* .*;", "", recipe).replace("127.0.0.1:8000", f"127.0.0.1:{upstream}")
    places = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{place}_temp_path {folder}/{place};\n" for place in places)
    user = "user root;" if os.getuid() == 0 else ""
    return (
        f"{user} daemon off; pid {folder}/pid; error_log {folder}/errors; worker_processes 1;\n"
        f"events {{ worker_connections 128; }}\nhttp {{ access_log off;\n{folders}{recipe} }}\n"
    )


@pytest.fixture(scope="module")
def proxy(tmp_path_factory):
    """The port of nginx in front of a server with a token."""
    folder, port, upstream = tmp_path_factory.mktemp("nginx"), free_port(), free_port()
    app = make_app(new_service(folder / "m.hycal"), Access("127.0.0.1", TOKEN))
    config = uvicorn.Config(app, port=upstream, http=BoundedProtocol, ws="none", log_level="critical")
    server = uvicorn.Server(config)
    serving = threading.Thread(target=server.run)
    serving.start()
    (folder / "nginx.conf").write_text(configuration(folder, port, upstream))
    with subprocess.Popen([NGINX, "-c", folder / "nginx.conf", "-p", folder, "-e", folder / "errors"]) as nginx:
        try:
            wait_for(upstream)
            wait_for(port)
            yield port
        finally:
            nginx.terminate()
            server.should_exit = True
            serving.join()


def ask(port: int, method: str, path: str, body: bytes | None = None, **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request(method, path, body, {"Host": NAME, **headers})
    status = connection.getresponse().status
    connection.close()
    return status


def test_the_page_and_its_changes_pass(proxy):
    allowed = {"Authorization": f"Bearer {TOKEN}", "Origin": f"https://{NAME}", "Sec-Fetch-Site": "same-origin"}
    assert ask(proxy, "GET", "/api/health") == 200
    assert ask(proxy, "GET", "/api/info") == 401
    assert ask(proxy, "GET", "/api/info", **allowed) == 200
    assert ask(proxy, "POST", "/api/undo", **allowed) == 400, "nothing to undo"
    assert ask(proxy, "POST", "/api/undo", **{**allowed, "Origin": "https://evil.example"}) == 403


def test_large_heads_and_bodies_are_refused(proxy):
    assert ask(proxy, "GET", "/api/health", A="a" * 20_000) in (400, 431)
    assert ask(proxy, "POST", "/api/undo", b"x" * 9_000) == 413
    with socket.create_connection(("127.0.0.1", proxy), PATIENCE) as door:
        door.sendall(b"POST /api/images HTTP/1.1\r\nHost: photos.example\r\nContent-Length: 70000000\r\n\r\n")
        assert door.recv(100).split()[1] == b"413"


@pytest.mark.parametrize(
    "begin",
    [b"", b"GET / HTTP/1.1\r\nHost: pho", b"POST /api/images HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx"],
)
def test_clients_that_stop_are_let_go_and_others_are_answered(proxy, begin):
    doors = [socket.create_connection(("127.0.0.1", proxy), PATIENCE) for _ in range(40)]
    for door in doors:
        door.sendall(begin)
    assert ask(proxy, "GET", "/api/health") == 200
    for door in doors:
        try:
            while door.recv(1000):
                pass
        except ConnectionError:
            pass  # reset_timedout_connection
        door.close()
