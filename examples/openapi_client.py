"""A client of `hycal serve`, made from the API's own description: every operation becomes a function.

    python examples/openapi_client.py http://127.0.0.1:8000                            list the operations
    python examples/openapi_client.py http://127.0.0.1:8000 classify new.jpg            send images
    python examples/openapi_client.py http://127.0.0.1:8000 rename '{"old": "a/x", "new": "a/y"}'
    python examples/openapi_client.py http://127.0.0.1:8000 examples label=pets/cat     ask with parameters

The token of a server that wants one comes from the variable HYCAL_TOKEN. It needs nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
import uuid
from pathlib import Path
from typing import Any


class Client:
    """The operations of one server, by the last words of their paths: `client("classify", images=[...])`."""

    def __init__(self, address: str, token: str | None = None) -> None:
        self._address = address.rstrip("/")
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        paths = json.loads(self._send("GET", "/openapi.json"))["paths"]
        self.operations: dict[str, tuple[str, str, dict[str, Any]]] = {
            path.removeprefix("/api/").strip("/"): (method.upper(), path, said)
            for path, methods in paths.items()
            for method, said in methods.items()
        }

    def __call__(self, name: str, body: object = None, *, images: list[Path] | None = None, **parameters: str) -> Any:
        """Call an operation; return its JSON."""
        method, path, _ = self.operations[name]
        for key in [key for key in parameters if f"{{{key}}}" in path]:
            path = path.replace(f"{{{key}}}", urllib.parse.quote(parameters.pop(key), safe=""))
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        kind, content = "application/json", None if body is None else json.dumps(body).encode()
        if images:
            kind, content = _form(images)
        return json.loads(self._send(method, path + query, content, kind))

    def _send(self, method: str, path: str, content: bytes | None = None, kind: str = "application/json") -> bytes:
        headers = {**self._headers, "Content-Type": kind}
        request = urllib.request.Request(self._address + path, content, headers, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                found: bytes = answer.read()
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{error.code}: {json.loads(error.read())['detail']}") from None
        except urllib.error.URLError as error:
            raise SystemExit(f"Nobody answers at {self._address}: {error.reason}. Start `hycal serve` first.") from None
        return found


def _form(images: list[Path]) -> tuple[str, bytes]:
    """Return images as the fields `files` of a form."""
    edge = uuid.uuid4().hex
    head = 'Content-Disposition: form-data; name="files"; filename="{}"'
    parts = [
        f"--{edge}\r\n{head.format(urllib.parse.quote(image.name))}\r\n\r\n".encode() + image.read_bytes()
        for image in images
    ]
    return f"multipart/form-data; boundary={edge}", b"\r\n".join([*parts, f"--{edge}--\r\n".encode()])


def main(address: str, name: str = "", *given: str) -> None:
    """Print the operations, or what one of them answers."""
    client = Client(address, os.environ.get("HYCAL_TOKEN"))
    if name not in client.operations:
        for known, (method, _, said) in client.operations.items():
            print(f"{method:5}{known:20}{said['summary']}")
        return
    parameters = dict(one.split("=", 1) for one in given if "=" in one and not one.startswith("{"))
    body = next((json.loads(one) for one in given if one.startswith("{")), None)
    images = [Path(one) for one in given if "=" not in one and not one.startswith("{")]
    print(json.dumps(client(name, body, images=images, **parameters), indent=1))  # ASCII: no name moves the terminal


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
