"""Image files that mean harm, against a running server and the command line."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.attacks.case import Case
from benchmarks.attacks.target import ask, at_once, attacked, upload
from hycal.embedding.decoding import PEAK_BYTES, PEAKS

AT_ONCE = 8
SIDE = 4000
PICTURES: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    "JPEG": ("JPEG", "RGB", {}),
    "progressive JPEG": ("JPEG", "CMYK", {"progressive": True}),
    "PNG": ("PNG", "RGBA", {}),
    "GIF": ("GIF", "P", {}),
    "WebP": ("WEBP", "RGB", {"lossless": True}),
    "BMP": ("BMP", "RGB", {}),
    "TIFF": ("TIFF", "RGB", {}),
    "float TIFF": ("TIFF", "F", {}),
}
_SLACK = 0.5
_MEASURE = """
import pathlib, sys
from hycal.embedding.decoding import decode
peak = lambda: 1024 * int(pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
content = pathlib.Path(sys.argv[1]).read_bytes()
before = peak()
decode(content)
print(peak() - before)
"""


def png(width: int, height: int) -> bytes:
    """Return a 1-bit PNG in a few kilobytes."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    press = zlib.compressobj(9)
    row = bytes(1 + -(-width // 8))
    body = b"".join(press.compress(row) for _ in range(height)) + press.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def ico() -> bytes:
    """Return an icon that holds a PNG of 169 million pixels; Pillow decodes it to find its size."""
    content = png(13_000, 13_000)
    return struct.pack("<HHH", 0, 1, 1) + struct.pack("<BBBBHHII", 0, 0, 0, 0, 1, 32, len(content), 22) + content


def webp() -> bytes:
    """Return a WebP of 49 million pixels, fewer than a server allows, in some kilobytes."""
    buffer = io.BytesIO()
    Image.new("RGB", (7000, 7000)).save(buffer, "WEBP", lossless=True)
    return buffer.getvalue()


def progressive() -> bytes:
    """Return a progressive JPEG of 36 million pixels whose last scan comes a thousand times."""
    buffer = io.BytesIO()
    Image.new("RGB", (6000, 6000), "grey").save(buffer, "JPEG", progressive=True)
    content = buffer.getvalue()
    last = content.rindex(b"\xff\xda")
    return content[:last] + content[last:-2] * 1000 + content[-2:]


def send(folder: Path, *, make: Callable[[], bytes], expected: str, clients: int = AT_ONCE) -> tuple[bool, str]:
    """Send an image several times at once; each must be refused for the expected reason, and a sound one answered."""
    content, problems, statuses = make(), set[str](), set[int]()

    def client(port: int) -> None:
        body, headers = upload(content)
        try:
            status, told = ask(port, "POST", "/api/classify", body, headers)
        except OSError as error:
            problems.add(f"no answer: {error}")
            return
        statuses.add(status)
        problems.update(str(answer["problem"]) for answer in json.loads(told).get("answers", ()))

    with attacked(folder) as watched:
        at_once(partial(client, watched.server.port), clients)
        body, headers = upload(png(64, 64))
        _, told = ask(watched.server.port, "POST", "/api/classify", body, headers)
        sound = json.loads(told)["answers"][0]["problem"] is None
    held = watched.held and statuses == {200} and all(expected in problem for problem in problems) and sound
    answered = "a sound image is answered" if sound else "a sound image is refused"
    return held, f"{len(content):,} bytes; {watched}; {sorted(problems)}; {answered}"


def memory(folder: Path) -> tuple[bool, str]:
    """Decode the largest pictures of each format in processes of their own, and compare their memory with the limit."""
    found = {}
    for name, (kind, mode, options) in PICTURES.items():
        path = folder / "picture"
        Image.new(mode, (SIDE, SIDE)).save(path, kind, **options)
        done = subprocess.run([sys.executable, "-c", _MEASURE, str(path)], capture_output=True, text=True, check=True)
        found[name] = float(done.stdout) / SIDE**2, PEAKS.get(kind, PEAK_BYTES)
    held = all(measured < assumed + _SLACK for measured, assumed in found.values())
    return held, "bytes a pixel: " + ", ".join(f"{name} {measured:.1f}" for name, (measured, _) in found.items())


def command_line(folder: Path) -> tuple[bool, str]:
    """Learn a folder with a photograph of 108 million pixels by the command line."""
    images = folder / "images" / "things" / "one"
    images.mkdir(parents=True)
    (images / "large.png").write_bytes(png(12_000, 9_000))
    (images / "sound.png").write_bytes(png(64, 64))
    program = "from hycal.cli import app; app()"
    done = subprocess.run(
        [sys.executable, "-c", program, "learn", str(folder / "model.hycal"), str(folder / "images")],
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    lines = [line for line in said.splitlines() if "108,000,000" in line]
    told = " ".join(lines).partition("large.png: ")[2]
    return len(lines) == 1 and "Warning" not in said, f"{len(lines)} line: {told}"


CASES: tuple[Case, ...] = (
    Case(3, f"{AT_ONCE} hostile ICOs are refused unread", partial(send, make=ico, expected="known format")),
    Case(3, f"{AT_ONCE} large WebPs are refused before decoding", partial(send, make=webp, expected="limit for WEBP")),
    Case(
        3,
        "a JPEG that decodes for minutes is stopped",
        partial(send, make=progressive, expected="processor time", clients=1),
    ),
    Case(3, "decoding takes no more memory than its limit assumes", memory),
    Case(3, "a photograph of 108 million pixels is one clear error, without a warning", command_line),
)
