"""Images of noise, their files, and folders of them."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image


def picture(seed: int, *, size: tuple[int, int] = (20, 16)) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def make_folder(root: Path, *, classes: int = 2, images: int = 5) -> Path:
    for label in range(classes):
        (root / f"class_{label}").mkdir(parents=True)
        for number in range(images):
            picture(1000 * label + number).save(root / f"class_{label}" / f"{number:03}.png")
    return root


def file_of(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def giant_png(side: int) -> bytes:
    """A valid 1-bit PNG of side x side pixels, in a few kilobytes."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    press = zlib.compressobj(9)
    row = bytes(1 + side // 8)
    body = b"".join(press.compress(row) for _ in range(side)) + press.flush()
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def make_mixed_folder(folder: Path) -> tuple[set[str], set[str]]:
    """Write every kind of file that real folders hold; return the names of the good and of the bad."""
    exif = Image.Exif()
    exif[0x0112] = 6
    deep = Image.fromarray(np.linspace(0, 65535, 400).astype(np.uint16).reshape(20, 20))
    frames = [picture(20 + i) for i in range(3)]
    good = {
        "good.jpg": file_of(picture(1), "JPEG"),
        "deep.png": file_of(deep, "PNG"),
        "cmyk.jpg": file_of(picture(2).convert("CMYK"), "JPEG"),
        "animated.gif": file_of(frames[0], "GIF", save_all=True, append_images=frames[1:]),
        "rotated.jpg": file_of(picture(3), "JPEG", exif=exif),
        "palette.png": file_of(picture(4).convert("P"), "PNG", transparency=b"\x10" * 16),
        "no_suffix": file_of(picture(5), "PNG"),
    }
    bad = {
        "empty.jpg": b"",
        "truncated.jpg": file_of(picture(6, size=(200, 200)), "JPEG")[:4000],
        "giant.png": giant_png(20_000),
        "strip.png": file_of(Image.new("1", (1, 5000)), "PNG"),
        "notes.txt": b"not an image",
        "text.png": b"neither",
    }
    for name, content in {**good, **bad}.items():
        (folder / name).write_bytes(content)
    (folder / "gone.jpg").symlink_to(folder / "nowhere.jpg")
    os.mkfifo(folder / "pipe.jpg")
    (folder / "loop").symlink_to(folder)
    (folder / ".hidden.jpg").write_bytes(b"")
    return set(good), {*bad, "gone.jpg", "pipe.jpg", "loop"}
