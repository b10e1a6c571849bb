"""Encoders that are real and tiny, for tests of everything around them."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

import numpy as np
from PIL import Image

from hycal.errors import HyCalError
from hycal.validation import Floats


class TinyEncoder:
    """A fixed random projection of the 8 x 8 image."""

    has_text = False
    backend = "onnx"

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


class ColourEncoder:
    """The mean colour of sixteen fields."""

    name = "colours"
    dimension = 48
    fingerprint = "colours-1"
    has_text = False

    def preprocess(self, image):
        return np.asarray(image.resize((4, 4)), dtype=np.float32).transpose(2, 0, 1) / 255 + 0.01

    def encode(self, batch):
        rows = batch.reshape(len(batch), -1)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def encode_texts(self, texts):
        raise AssertionError("no text tower")


class CrashingEncoder(ColourEncoder):
    """Ends the process that prepares a green image, as a faulty decoder would."""

    def preprocess(self, image):
        red, green, blue = np.asarray(image).reshape(-1, 3).mean(axis=0)
        if green > red + blue:
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().preprocess(image)
