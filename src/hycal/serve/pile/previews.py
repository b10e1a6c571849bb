"""Pictures of a pile for the screen: decoded in a worker process, and always sent as a new JPEG.

The files of a pile may come from anywhere, so none is sent as it is, and nothing of it is decoded in the server.
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from hycal.embedding.preparation import ImageOrder, isolated
from hycal.validation import Floats

SIDE = 720  # pixels of the longer side
_QUALITY = 82


def preview(content: bytes, *, most_pixels: int) -> bytes:
    """Return an image file as a JPEG of at most 720 pixels; raise an ImageError if it cannot be decoded."""
    prepared = isolated()(content, ImageOrder(_pixels, most_pixels, thumbnail=False))
    buffer = io.BytesIO()
    Image.fromarray(prepared.tensor.astype(np.uint8)).save(buffer, "JPEG", quality=_QUALITY)
    return buffer.getvalue()


def _pixels(picture: Image.Image) -> Floats:
    picture.thumbnail((SIDE, SIDE), Image.Resampling.BICUBIC)
    return np.asarray(picture.convert("RGB"), np.float32)
