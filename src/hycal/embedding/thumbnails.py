"""Thumbnails of images, made from the pictures that are decoded for the encoder."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Container

from PIL import Image

from hycal.embedding.decoding import decode
from hycal.embedding.sources import Content, ImageError

SIDE = 96  # pixels of a thumbnail's longer side
MOST_BYTES = 3000
_QUALITIES = (60, 40, 20, 5)


class Thumbnails:
    """Thumbnails by content hash. The threads that decode images add to it.

    Parameters
    ----------
    known : container of bytes
        Content hashes of images that need no thumbnail.
    """

    def __init__(self, known: Container[bytes] = ()) -> None:
        self._known = known
        self._made: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes:
        """Return the thumbnail of an image as a JPEG file; b"" if it has none."""
        return self._made.get(key, b"")

    def wants(self, key: bytes) -> bool:
        """Return whether an image needs a thumbnail and has none yet."""
        return key not in self._known and key not in self._made

    def add(self, key: bytes, made: bytes) -> None:
        """Keep the thumbnail of an image."""
        self._made[key] = made

    def add_undecoded(self, key: bytes, content: Content) -> None:
        """Make the thumbnail of an image that nobody else decodes: a JPEG is decoded at a fraction of its size."""
        with contextlib.suppress(ImageError):  # it has an embedding, so it is learned all the same
            self.add(key, thumbnail(decode(content, enough=2 * SIDE)))


def thumbnail(picture: Image.Image) -> bytes:
    """Return a small JPEG of a picture, of at most about 3 kB; the picture is shrunk in place."""
    picture.thumbnail((SIDE, SIDE), Image.Resampling.BICUBIC)
    for quality in _QUALITIES:
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=quality, optimize=True)
        if buffer.tell() <= MOST_BYTES:
            break
    return buffer.getvalue()
