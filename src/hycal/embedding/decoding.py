"""Decoding of the raw content of one image, of a format on a list, to an upright RGB picture; and its thumbnail.

The result is the picture that a viewer shows. Content that cannot be decoded raises an `ImageError` with the reason.
`DECODER` is part of the key of the cache: a change here that changes any pixel must increase it.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Container, Iterator, Mapping
from typing import Final

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from hycal.embedding.sources import Content, ImageError
from hycal.errors import MissingExtraError, load_extra

DECODER: Final = 1
MOST_PIXELS: Final = 100_000_000  # 1.2 GB while it is decoded
MOST_ELONGATED: Final = 100  # a 1 x 20,000 strip, resized to a short side of 224, would have a billion pixels
TOO_LARGE: Final = "too large for the memory"
_VALUES_AT_ONCE: Final = 2**20

# Formats that cameras, phones and the web use, whose size stands in the header. Others are refused unread: EPS would
# start Ghostscript, and ICO is decoded before its size is known.
FORMATS: Final = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
_HEIC: Final = "HEIF"  # as pillow-heif calls it
_HEIC_BRANDS: Final = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})

# Memory at the peak, in bytes for each pixel; twelve where nothing is said. `python -m benchmarks.attacks` measures it.
PEAK_BYTES: Final = 12
PEAKS: Final[Mapping[str, int]] = {"WEBP": 16}

THUMBNAIL_SIDE: Final = 96  # pixels of the longer side
THUMBNAIL_BYTES: Final = 3000
_QUALITIES = (60, 40, 20, 5)


def decode(content: Content, *, most_pixels: int = MOST_PIXELS, enough: int | None = None) -> Image.Image:
    """Return the image as RGB, upright, first frame.

    `content` is an image file, or uint8 pixels of shape (h, w) or (h, w, 3). Images of more than `most_pixels` are
    refused before they are decoded, and so are those that need more than twelve bytes of memory for each of these
    pixels. `enough` is a sufficient side, for thumbnails and not for encoders: a JPEG is then decoded at a fraction of
    its size.
    """
    if not isinstance(content, bytes):
        picture = Image.fromarray(content)
        _check_size(picture, most_pixels)
        return picture.convert("RGB")
    try:
        with Image.open(io.BytesIO(content), formats=_formats(content)) as picture:
            _check_size(picture, most_pixels)
            if enough is not None:
                picture.draft(None, (enough, enough))
            picture.load()  # the first frame of an animation: Pillow has not moved from it
            return _as_rgb(_upright(picture))
    except ImageError:
        raise
    except UnidentifiedImageError:
        raise ImageError("not an image of a known format") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ImageError(f"more pixels than the limit of {most_pixels:,}") from None
    except MemoryError:
        raise ImageError(TOO_LARGE) from None
    except Exception as error:  # on hostile bytes, decoders raise errors of any type
        raise ImageError(f"broken image: {error or type(error).__name__}") from None


@contextlib.contextmanager
def pillow_quiet() -> Iterator[None]:
    """Suppress Pillow's warnings while images are decoded: the reasons of those that cannot be used say what matters.

    The filters belong to the whole process, so the caller of the threads that decode sets them, once for all images.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="PIL")
        yield


def _formats(content: bytes) -> tuple[str, ...]:
    """Return the formats to try; a HEIC photograph of a phone needs a package that not everybody has."""
    if content[4:8] != b"ftyp" or content[8:12] not in _HEIC_BRANDS:
        return FORMATS
    try:
        load_extra("pillow_heif", extra="heif", why="A HEIC photograph").register_heif_opener()
    except MissingExtraError as missing:
        raise ImageError(str(missing)) from None
    return (_HEIC,)


def _check_size(picture: Image.Image, most_pixels: int) -> None:
    width, height = picture.size
    if not width or not height:
        raise ImageError(f"{width} x {height} pixels: nothing to see")
    if width * height > most_pixels:
        raise ImageError(f"{width} x {height} is {width * height:,} pixels; the limit is {most_pixels:,}")
    peak = PEAKS.get(picture.format or "", PEAK_BYTES)
    if width * height * peak > most_pixels * PEAK_BYTES:
        most = most_pixels * PEAK_BYTES // peak
        raise ImageError(
            f"{width} x {height} is {width * height:,} pixels; the limit for {picture.format}, which needs more memory "
            f"than other formats, is {most:,}"
        )
    if max(width, height) > MOST_ELONGATED * min(width, height):
        raise ImageError(f"{width} x {height} pixels: one side is over {MOST_ELONGATED} times the other")


def _upright(picture: Image.Image) -> Image.Image:
    with contextlib.suppress(Exception):  # a broken EXIF block has no orientation; the pixels are sound
        ImageOps.exif_transpose(picture, in_place=True)
    return picture


def _as_rgb(picture: Image.Image) -> Image.Image:
    """Convert to RGB with `convert("RGB")`, as the reference of CLIP; first handle the modes that it gets wrong."""
    if picture.mode.startswith("I") or picture.mode == "F":
        picture = _eight_bits(picture)
    if "transparency" in picture.info:
        picture = picture.convert("RGBA")
    if picture.mode == "RGB" and picture.format != "WEBP":  # a picture of WebP keeps its decoder, which is large
        return picture
    return picture.convert("RGB")


def _eight_bits(picture: Image.Image) -> Image.Image:
    """Scale 16-bit, 32-bit and float images to 8 bits; `convert` would clip them, and a 16-bit scan would be white.

    A few rows are scaled at a time: a float64 copy of the largest image would take gigabytes in each thread.
    """
    values = np.asarray(picture)
    full = 1.0 if picture.mode == "F" else 65535
    if not np.isfinite(values).all() or values.min() < 0 or values.max() > full:
        raise ImageError(
            f"{picture.mode} pixels from {values.min():g} to {values.max():g}; expected 0 to {full:g}, "
            "no other brightness scale is agreed on"
        )
    scaled = np.empty(values.shape, dtype=np.uint8)
    step = max(1, _VALUES_AT_ONCE // values.shape[1])
    for start in range(0, len(values), step):
        part = values[start : start + step].astype(np.float64)
        scaled[start : start + step] = (part * (255 / full)).round()
    return Image.fromarray(scaled)


class Thumbnails:
    """Thumbnails by content hash. The threads that decode images add to it.

    Images whose content hash is `known` need none.
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
            self.add(key, thumbnail(decode(content, enough=2 * THUMBNAIL_SIDE)))


def thumbnail(picture: Image.Image) -> bytes:
    """Return a small JPEG of a picture, of at most about 3 kB; the picture is shrunk in place."""
    picture.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE), Image.Resampling.BICUBIC)
    for quality in _QUALITIES:
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=quality, optimize=True)
        if buffer.tell() <= THUMBNAIL_BYTES:
            break
    return buffer.getvalue()
