"""Thumbnails: small, upright, made once for each image that needs one."""

from __future__ import annotations

import io

from PIL import Image

from hycal.embedding.decoding import THUMBNAIL_BYTES, THUMBNAIL_SIDE, Thumbnails, decode, thumbnail
from tests.support.images import picture


def test_thumbnails_are_small_whatever_the_image():
    noise = thumbnail(picture(0, size=(500, 500)))
    assert len(noise) <= THUMBNAIL_BYTES
    flat = io.BytesIO()
    Image.new("RGB", (1900, 20), "red").save(flat, "JPEG")
    assert Image.open(io.BytesIO(thumbnail(decode(flat.getvalue())))).size == (96, 1)
    upright = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6  # rotated by a quarter
    Image.new("RGB", (400, 200), "red").save(upright, "JPEG", exif=exif)
    assert Image.open(io.BytesIO(thumbnail(decode(upright.getvalue())))).size == (48, 96)


def test_only_the_images_that_need_one_get_a_thumbnail():
    thumbnails = Thumbnails(known={b"known"})
    assert thumbnails.wants(b"new") and not thumbnails.wants(b"known")
    thumbnails.add(b"new", thumbnail(picture(0)))
    assert not thumbnails.wants(b"new") and thumbnails.get(b"new") and thumbnails.get(b"known") == b""
    thumbnails.add_undecoded(b"broken", b"no image")
    assert thumbnails.get(b"broken") == b""


def test_a_photograph_that_nobody_else_decodes_is_decoded_at_a_fraction_of_its_size(monkeypatch):
    large, sizes = io.BytesIO(), []
    monkeypatch.setattr(
        "hycal.embedding.decoding.thumbnail", lambda picture: sizes.append(picture.size) or thumbnail(picture)
    )
    Image.new("RGB", (1600, 1200), "red").save(large, "JPEG")
    thumbnails = Thumbnails()
    thumbnails.add_undecoded(b"large", large.getvalue())
    assert sizes == [(400, 300)]
    assert Image.open(io.BytesIO(thumbnails.get(b"large"))).size == (THUMBNAIL_SIDE, 72)
