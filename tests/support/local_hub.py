"""A hub on this machine: as much of the protocol as a client needs to make a repository, to upload and to fetch."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

_COMMIT = "0" * 39 + "1"


class LocalHub(ThreadingHTTPServer):
    """Repositories by name: their files, and whether they are private."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: LocalHub

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _send(self, content: bytes, kind: str = "application/json", code: int = 200, **headers: str) -> None:
        self.send_response(code)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _json(self, value: Any) -> None:
        self._send(json.dumps(value).encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked.get('organization') or 'me'}/{asked['name']}"
            self.server.files.setdefault(name, {})
            self.server.private[name] = bool(asked.get("private") or asked.get("visibility") == "private")
            self._json({"url": f"{self.server.address}/{name}", "id": name})
        elif "/preupload/" in self.path:
            files = json.loads(body)["files"]
            mode = {"uploadMode": "regular", "shouldIgnore": False}
            self._json({"files": [{"path": one["path"], **mode} for one in files]})
        elif match := re.match(r"/api/models/(\w+/[\w.-]+)/commit/", self.path):
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.server.files[match[1]][line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            self._json({"success": True, "commitOid": _COMMIT, "commitUrl": f"{self.server.address}/{match[1]}"})
        else:
            self._json({})

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if match := re.match(r"/api/models/(\w+/[\w.-]+)/tree/", self.path):
            listed = self.server.files[match[1]].items()
            self._json([{"type": "file", "path": name, "size": len(one), "oid": _COMMIT} for name, one in listed])
        elif match := re.match(r"/api/models/(\w+/[\w.-]+)(?:/revision/\w+)?(?:\?|$)", self.path):
            names = [{"rfilename": name} for name in self.server.files.get(match[1], {})]
            self._json({"id": match[1], "modelId": match[1], "sha": _COMMIT, "siblings": names, "private": True})
        elif match := re.match(r"/(\w+/[\w.-]+)/resolve/\w+/([\w.-]+)", self.path):
            content = self.server.files[match[1]][match[2]]
            about = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": _COMMIT}
            self._send(content, "application/octet-stream", **about)
        else:
            self._send(b"{}", code=404)

    def do_HEAD(self) -> None:
        self.do_GET()


@contextmanager
def local_hub() -> Iterator[LocalHub]:
    """Run a hub while the block runs."""
    hub = LocalHub()
    thread = Thread(target=hub.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        thread.join()
        hub.server_close()
