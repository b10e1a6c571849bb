"""Try an installed hycal as a new user would: learn drawn images, predict one, serve the model and ask it over HTTP.

    python tools/smoke.py

It runs the `hycal` beside the Python that runs it, in a folder of temporary files. `make dist` runs it on the wheel.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

COLOURS = {"red": (210, 40, 40), "green": (40, 180, 60), "blue": (40, 60, 210)}
TOKEN = "a-token-for-the-smoke-test"
_PATIENCE = 120


def draw(folder: Path) -> Path:
    """Draw four small pictures of each colour, in class folders; return a fifth of the last one."""
    for name, (red, green, blue) in COLOURS.items():
        (folder / name).mkdir(parents=True)
        for number in range(4):
            shade = red + 5 * number, green + 3 * number, blue - 4 * number
            (folder / name / f"{number}.png").write_bytes(png(shade))
    (folder.parent / "new.png").write_bytes(png((45, 65, 200)))
    return folder.parent / "new.png"


def png(colour: tuple[int, int, int], side: int = 32) -> bytes:
    """Return a PNG file of one colour; this runs where Pillow may not be installed."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    rows = (b"\0" + bytes(colour) * side) * side
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def run(*command: str | Path, environment: Mapping[str, str]) -> str:
    """Return the standard output of a command that must succeed."""
    done = subprocess.run([str(part) for part in command], env=dict(environment), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(
            f"{' '.join(map(str, command))} ended with code {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def ask(port: int, path: str, body: bytes | None = None, kind: str = "application/json") -> tuple[int, bytes]:
    """Return status and body of the answer to one request with the token."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def check_server(port: int, image: Path, *, read_only: bool) -> None:
    """Ask a running server all that matters to a new user; end with an error where it answers otherwise."""
    head = b'--x\r\nContent-Disposition: form-data; name="files"; filename="new.png"\r\n\r\n'
    body = head + image.read_bytes() + b"\r\n--x--\r\n"
    status, found = ask(port, "/api/classify", body, "multipart/form-data; boundary=x")
    best = json.loads(found)["answers"][0]["candidates"][0]["label"] if status == 200 else found
    expect("the answer to an image", best, "pictures/blue")
    expect("the page", ask(port, "/")[0], 200)
    expect("an undo", ask(port, "/api/undo", b"{}")[0], 403 if read_only else 200)
    status, metrics = ask(port, "/metrics")
    counted = b'hycal_requests_total{method="POST",route="/api/classify",status="200"} 1.0' in metrics
    expect("the metrics", (status, counted), (200, True))


def expect(what: str, found: object, expected: object) -> None:
    """End with an error unless both are equal."""
    if found != expected:
        raise SystemExit(f"{what} is {found!r}; expected {expected!r}")


@contextmanager
def running(process: subprocess.Popen[str]) -> Iterator[None]:
    """Let a server run while the block does, then end it; end with an error unless it ends by itself."""
    try:
        yield
    finally:
        process.terminate()
        try:
            _, errors = process.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise SystemExit("the server did not end within two minutes") from None
    if process.returncode not in (0, -15) or "Traceback" in errors:
        raise SystemExit(f"the server ended with code {process.returncode}:\n{errors}")


def wait_for(port: int, process: subprocess.Popen[str]) -> None:
    """Wait until a server answers."""
    until = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < until:
        try:
            if ask(port, "/api/health")[0] == 200:
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"the server does not start (code {process.poll()})")


def main() -> None:
    """Try everything, and say what was tried."""
    hycal = Path(sys.executable).with_name("hycal.exe" if sys.platform == "win32" else "hycal")
    with tempfile.TemporaryDirectory(prefix="hycal-smoke-") as place:
        folder, port = Path(place), free_port()
        image, model = draw(folder / "pictures"), folder / "m.hycal"
        environment = {**os.environ, "HYCAL_CACHE": str(folder / "cache"), "HYCAL_TOKEN": TOKEN}
        sys.stdout.write(run(hycal, "--version", environment=environment))
        run(hycal, "learn", model, folder / "pictures", "--yes", environment=environment)
        told = run(hycal, "predict", model, image, "--json", environment=environment)
        expect("what predict says", "pictures/blue" in told.splitlines()[0], True)
        command = [str(hycal), "serve", str(model), "--port", str(port)]
        server = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        with running(server):
            wait_for(port, server)
            check_server(port, image, read_only=False)
    sys.stdout.write("learn, predict and serve work\n")


if __name__ == "__main__":
    main()
