"""A real, tiny encoder and a folder of images, for tests of everything around them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from hycal.errors import HyCalError
from hycal.validation import Floats


class TinyEncoder:
    """A fixed random projection of the 8 x 8 image."""

    has_text = False

    def __init__(self, *, seed: int = 0, dimension: int = 12) -> None:
        self.name = f"tiny-{seed}"
        self.dimension = dimension
        self.fingerprint = f"tiny-{seed}-{dimension}"
        self.calls: list[tuple[int, ...]] = []
        self._weights = np.random.default_rng(seed).normal(size=(3 * 8 * 8, dimension)).astype(np.float32)

    def preprocess(self, image: Image.Image) -> Floats:
        small = np.asarray(image.resize((8, 8), Image.Resampling.BICUBIC), dtype=np.float32) / 255 - 0.45
        return small.transpose(2, 0, 1)

    def encode(self, batch: Floats) -> Floats:
        self.calls.append(batch.shape)
        # One product per row: BLAS rounds a row differently by its place in a batch.
        rows = np.stack([image.ravel() @ self._weights for image in batch])
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)

    def encode_texts(self, texts: Sequence[str]) -> Floats:
        raise HyCalError("tiny has no text tower")


def picture(seed: int, *, size: tuple[int, int] = (20, 16)) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def make_folder(root: Path, *, classes: int = 2, images: int = 5) -> Path:
    for label in range(classes):
        (root / f"class_{label}").mkdir(parents=True)
        for number in range(images):
            picture(1000 * label + number).save(root / f"class_{label}" / f"{number:03}.png")
    return root
