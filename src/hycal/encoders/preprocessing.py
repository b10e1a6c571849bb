"""Image preprocessing, in Pillow and numpy: resize, centre crop, normalise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from PIL import Image

from hycal.errors import HyCalError
from hycal.validation import Floats

Interpolation = Literal["bicubic", "bilinear"]
_FILTERS: Mapping[str, Image.Resampling] = {
    "bicubic": Image.Resampling.BICUBIC,
    "bilinear": Image.Resampling.BILINEAR,
}
_LONGEST_RATIO = 200  # a longer strip would be resized to hundreds of megabytes, and the crop keeps one square


@dataclass(frozen=True)
class Preprocessing:
    """From a Pillow image to a (3, size, size) input.

    The steps are those of OpenAI's CLIP with torchvision: the shorter side is resized to `resize` (the longer one
    truncated to an int), a square of `size` is cut from the centre (half pixels rounded to even), values are scaled to
    [0, 1], then normalised with `mean` and `std`. There is one difference: an image that is not RGB is converted before
    the resize and not after it, because Pillow resizes palette images by nearest neighbour. With `aspect` "squashed",
    as SigLIP has it, the whole image is resized to the square and nothing is cut.

    >>> from PIL import Image
    >>> Preprocessing().apply(Image.new("RGB", (320, 240))).shape
    (3, 224, 224)
    """

    size: int = 224  # side of the square input
    resize: int = 224  # length of the shorter side before the crop; `size` for CLIP
    interpolation: Interpolation = "bicubic"
    # Per channel, for values in [0, 1].
    mean: tuple[float, float, float] = (0.48145466, 0.4578275, 0.40821073)
    std: tuple[float, float, float] = (0.26862954, 0.26130258, 0.27577711)
    aspect: Literal["kept", "squashed"] = "kept"

    def __post_init__(self) -> None:
        if self.interpolation not in _FILTERS:
            raise HyCalError(f"Interpolation {self.interpolation!r} is unknown; expected one of {sorted(_FILTERS)}.")
        if self.aspect not in ("kept", "squashed"):
            raise HyCalError(f"Aspect {self.aspect!r} is unknown; expected 'kept' or 'squashed'.")
        if not 0 < self.size <= self.resize:
            raise HyCalError(f"Expected 0 < size <= resize, but size is {self.size} and resize is {self.resize}.")

    def apply(self, image: Image.Image) -> Floats:
        """Return the float32 input of `image`, shape (3, size, size)."""
        return self.normalised(self.crop(image))

    def normalised(self, square: Image.Image) -> Floats:
        """Return the float32 input of an RGB square of side `size`."""
        planes = np.asarray(square).transpose(2, 0, 1)
        pixels: Floats = np.divide(planes, np.float32(255), out=np.empty(planes.shape, np.float32), dtype=np.float32)
        pixels -= np.array(self.mean, dtype=np.float32)[:, None, None]  # by planes: faster than by pixels of 3
        pixels /= np.array(self.std, dtype=np.float32)[:, None, None]
        return pixels

    def crop(self, image: Image.Image) -> Image.Image:
        """Return the RGB square of side `size` that the network sees."""
        whole = self.resized(image, self.resize)
        left = round((whole.width - self.size) / 2)
        top = round((whole.height - self.size) / 2)
        return whole.crop((left, top, left + self.size, top + self.size))

    def resized(self, image: Image.Image, length: int) -> Image.Image:
        """Return the whole image in RGB, its shorter side of `length` pixels, or both if the aspect is squashed."""
        width, height = image.size
        if max(width, height) > _LONGEST_RATIO * min(width, height):
            raise HyCalError(
                f"An image of {width} x {height} pixels is too narrow to resize: its sides may differ by a factor "
                f"of {_LONGEST_RATIO}. Crop it first."
            )
        if self.aspect == "squashed":
            target = (length, length)
        elif width <= height:
            target = (length, int(length * height / width))
        else:
            target = (int(length * width / height), length)
        rgb = image if image.mode == "RGB" else image.convert("RGB")
        return rgb if target == (width, height) else rgb.resize(target, _FILTERS[self.interpolation])

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON values, for the fingerprint; a kept aspect is left out, as ever."""
        values = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        if self.aspect == "kept":
            del values["aspect"]
        return values
