"""Resize and crop against CLIP's reference, written out here with Pillow alone."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from hycal.encoders.preprocessing import Preprocessing
from hycal.errors import HyCalError


def reference(image: Image.Image, size: int = 224) -> np.ndarray:
    """torchvision's Resize(size, BICUBIC), CenterCrop(size), ToTensor, Normalize, as OpenAI's CLIP composes them."""
    width, height = image.size
    short, long = (width, height) if width <= height else (height, width)
    new_short, new_long = size, int(size * long / short)
    new = (new_short, new_long) if width <= height else (new_long, new_short)
    image = image.resize(new, Image.Resampling.BICUBIC)
    top, left = round((new[1] - size) / 2.0), round((new[0] - size) / 2.0)
    image = image.crop((left, top, left + size, top + size)).convert("RGB")
    tensor = np.array(image, np.uint8).transpose(2, 0, 1).astype(np.float32) / np.float32(255)
    mean = np.array([0.48145466, 0.4578275, 0.40821073], np.float32)[:, None, None]
    std = np.array([0.26862954, 0.26130258, 0.27577711], np.float32)[:, None, None]
    return (tensor - mean) / std


SIZES = [(224, 224), (225, 224), (224, 227), (640, 480), (333, 501), (28, 28), (500, 31), (1, 1), (7, 1000), (223, 450)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_identical_to_clip(size: tuple[int, int], mode: str) -> None:
    random = np.random.default_rng(0)
    channels = (3,) if mode == "RGB" else ()
    image = Image.fromarray(random.integers(0, 256, (size[1], size[0], *channels), dtype=np.uint8))
    result = Preprocessing().apply(image)
    assert result.dtype == np.float32
    assert result.flags.c_contiguous
    np.testing.assert_array_equal(result, reference(image))


@pytest.mark.parametrize("mode", ["RGBA", "P", "CMYK", "1", "LA", "I;16"])
def test_other_modes_become_rgb_first(mode: str) -> None:
    image = Image.new("RGB", (300, 260), (200, 30, 60)).convert("L" if mode == "I;16" else "RGB").convert(mode)
    np.testing.assert_array_equal(Preprocessing().apply(image), reference(image.convert("RGB")))


def test_narrow_image_is_refused() -> None:
    with pytest.raises(HyCalError, match="5000 x 10 pixels is too narrow"):
        Preprocessing().apply(Image.new("RGB", (5000, 10)))


@pytest.mark.parametrize("wrong", [{"interpolation": "nearest"}, {"size": 300}, {"size": 0}])
def test_wrong_settings(wrong: dict[str, object]) -> None:
    with pytest.raises(HyCalError, match=r"[Ee]xpected"):
        Preprocessing(**wrong)  # type: ignore[arg-type]
