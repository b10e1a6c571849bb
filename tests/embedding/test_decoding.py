import io
import sys

import numpy as np
import pytest
from PIL import Image, ImageFile

from hycal.embedding.decoding import decode
from hycal.embedding.sources import ImageError
from tests.support.images import file_of, giant_png, picture


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF"])
def test_lossless_formats_give_the_pixels(kind: str) -> None:
    image = picture(1)
    assert np.array_equal(np.asarray(decode(file_of(image, kind))), np.asarray(image))


def test_sixteen_bits_are_scaled_not_clipped() -> None:
    deep = np.linspace(0, 65535, 64).round().astype(np.uint16).reshape(8, 8)
    decoded = np.asarray(decode(file_of(Image.fromarray(deep), "PNG")))
    assert np.abs(decoded[..., 0].astype(float) - deep / 257).max() <= 0.5
    assert (decoded[..., 0] == decoded[..., 2]).all()


def test_scaling_by_parts_is_scaling_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    monkeypatch.setattr("hycal.embedding.decoding._VALUES_AT_ONCE", 1000)
    decoded = np.asarray(decode(file_of(Image.fromarray(deep), "PNG")))[..., 0]
    assert np.array_equal(decoded, (deep * (255 / 65535)).round())


def test_float_tiff_between_zero_and_one_is_scaled_and_others_refused() -> None:
    grey = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    assert np.asarray(decode(file_of(Image.fromarray(grey), "TIFF"))).max() == 255
    with pytest.raises(ImageError, match="brightness"):
        decode(file_of(Image.fromarray(grey * 300), "TIFF"))


def test_cmyk_palette_grey_bilevel_and_transparency_become_rgb() -> None:
    red = Image.new("RGB", (20, 16), (255, 0, 0))
    assert np.asarray(decode(file_of(red.convert("CMYK"), "JPEG"))).reshape(-1, 3).mean(0) == pytest.approx(
        [255, 0, 0], abs=4
    )
    assert decode(file_of(red.convert("P"), "PNG", transparency=b"\x00" * 256)).getpixel((3, 3)) == (
        255,
        0,
        0,
    )
    for mode in ("L", "LA", "1", "RGBA"):
        assert decode(file_of(picture(2).convert(mode), "PNG")).mode == "RGB"


def test_animation_gives_its_first_frame() -> None:
    frames = [Image.new("RGB", (20, 16), colour) for colour in ("red", "lime", "blue")]
    for kind in ("GIF", "WEBP", "PNG"):
        content = file_of(frames[0], kind, save_all=True, append_images=frames[1:])
        red, green, _ = decode(content).getpixel((5, 5))
        assert red > 240 and green < 20, kind


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_rotation_is_undone(orientation: int) -> None:
    upright = Image.new("RGB", (40, 24), "black")
    upright.paste("white", (0, 0, 20, 12))  # the upper left quarter
    undo = {
        2: 0,
        3: 3,
        4: 1,
        5: 5,
        6: 2,
        7: 6,
        8: 4,
    }  # the transpose that stores `upright` under each orientation
    stored = upright.transpose(Image.Transpose(undo[orientation])) if orientation > 1 else upright
    exif = Image.Exif()
    exif[0x0112] = orientation
    decoded = decode(file_of(stored, "PNG", exif=exif))
    assert np.array_equal(np.asarray(decoded), np.asarray(upright))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "TIFF"])
def test_every_truncation_is_an_image_or_a_reason(kind: str) -> None:
    content = file_of(picture(3), kind)
    for length in range(1, len(content), max(1, len(content) // 40)):
        try:
            assert decode(content[:length]).mode == "RGB"
        except ImageError as reason:
            assert str(reason)


def test_flipped_bytes_are_an_image_or_a_reason() -> None:
    random = np.random.default_rng(0)
    content = file_of(picture(3), "JPEG")
    for _ in range(200):
        broken = bytearray(content)
        broken[random.integers(len(broken))] = random.integers(256)
        try:
            assert decode(bytes(broken)).mode == "RGB"
        except ImageError as reason:
            assert str(reason)


def test_giants_and_strips_are_refused_before_decoding() -> None:
    with pytest.raises(ImageError, match="pixels"):
        decode(giant_png(20_000))
    with pytest.raises(ImageError, match="one side"):
        decode(file_of(Image.new("1", (1, 5000)), "PNG"))
    with pytest.raises(ImageError, match=r"320 pixels; the limit is 100"):
        decode(file_of(picture(1), "PNG"), most_pixels=100)


def test_a_format_that_needs_more_memory_has_a_lower_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """140 bytes of WebP, 7000 x 7000 pixels, took 977 MB."""
    content = file_of(Image.new("RGB", (70, 70)), "WEBP")
    assert decode(content, most_pixels=7000).size == (70, 70)
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda self: pytest.fail("decoded"))
    with pytest.raises(ImageError, match=r"4,900 pixels; the limit for WEBP, .* is 3,750"):
        decode(content, most_pixels=5000)


@pytest.mark.parametrize("kind", ["PPM", "ICO", "TGA", "JPEG2000", "AVIF", "PCX", "DDS", "SGI", "PSD"])
def test_formats_that_are_not_on_the_list_are_refused_unread(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.init()
    content = b"8BPS" + bytes(100) if kind == "PSD" else None
    if content is None and kind in Image.SAVE:
        content = file_of(picture(1, size=(64, 64)), kind)
    if kind in Image.OPEN:
        monkeypatch.setitem(Image.OPEN, kind, (lambda *given: pytest.fail("read"), Image.OPEN[kind][1]))
    with pytest.raises(ImageError, match="not an image of a known format"):
        decode(content or b"")


def test_a_photograph_of_a_phone_is_decoded_where_the_package_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pillow_heif = pytest.importorskip("pillow_heif")
    grey = Image.new("RGB", (64, 48), (90, 90, 90))
    buffer = io.BytesIO()
    pillow_heif.from_pillow(grey).save(buffer, quality=90)
    assert np.abs(np.asarray(decode(buffer.getvalue())).astype(int) - 90).max() <= 3
    with pytest.raises(ImageError, match="limit is 100"):
        decode(buffer.getvalue(), most_pixels=100)
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(ImageError, match=r"pip install 'hycal\[heif\]'"):
        decode(buffer.getvalue())


@pytest.mark.parametrize("content", [b"hello", b"%!PS-Adobe-3.0 EPSF-3.0\n", b"\x00" * 100, b"\xff\xd8\xff"])
def test_other_files_are_refused(content: bytes) -> None:
    with pytest.raises(ImageError):
        decode(content)


def test_pixels_of_an_array() -> None:
    grey = np.arange(64, dtype=np.uint8).reshape(8, 8)
    assert np.array_equal(np.asarray(decode(grey))[..., 1], grey)
