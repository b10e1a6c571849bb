"""Golden vectors: the expected embeddings of a few drawn images, for checking the weights of an encoder.

The images are drawn in integer arithmetic, so they are the same on every machine; their sizes test the resize and the
crop. `tools/make_golden.py` writes the vectors, `golden/NAME.npy`, from weights that were compared with independent
embeddings of photographs.
"""

from __future__ import annotations

from importlib import resources

import numpy as np
from PIL import Image

from hycal.encoders.encoder import Encoder
from hycal.errors import HyCalError
from hycal.storage.npz import load_array
from hycal.validation import Floats

_SIZES = ((224, 224), (320, 240), (181, 333), (64, 48))


def golden_images() -> list[Image.Image]:
    """Return the images of the golden vectors."""
    return [_drawing(width, height, number) for number, (width, height) in enumerate(_SIZES)]


def _drawing(width: int, height: int, number: int) -> Image.Image:
    """Draw a disc, a gradient and stripes, which depend on `number`."""
    y, x = np.mgrid[0:height, 0:width]
    red = (x * 255) // (width - 1)
    green = ((x // 8 + (number + 1) * y // 16) % 2) * 160 + (y * 60) // height
    blue = (x * y * (number + 3) // 7) % 256
    pixels = np.stack([red, green, blue], axis=2)
    radius = min(width, height) // 3
    disc = (x - width // 2) ** 2 + (y - height // 2) ** 2 < radius**2
    pixels[disc] = (40 + 60 * number, 200 - 50 * number, 90)
    return Image.fromarray(pixels.astype(np.uint8))


def embed_golden(encoder: Encoder) -> Floats:
    """Return the embeddings of the golden images."""
    return encoder.encode(np.stack([encoder.preprocess(image) for image in golden_images()]))


def has_golden(name: str) -> bool:
    """Return whether the encoder `name` has golden vectors."""
    return resources.files("hycal.encoders").joinpath("golden", f"{name}.npy").is_file()


def check_golden(encoder: Encoder, *, tolerance: float) -> float:
    """Return the smallest cosine of `encoder` and its golden vectors; one below `tolerance` is an error."""
    cosine = golden_cosine(encoder)
    if cosine < tolerance:
        raise HyCalError(
            f"{encoder.name} disagrees with its golden vectors: the smallest cosine is {cosine:.4f}, expected at "
            f"least {tolerance}. The weights are damaged or of another model; get them again."
        )
    return cosine


def golden_cosine(encoder: Encoder) -> float:
    """Return the smallest cosine between the golden vectors of `encoder` and its own embeddings."""
    file = resources.files("hycal.encoders").joinpath("golden", f"{encoder.name}.npy")
    expected = load_array(file.read_bytes()).astype(np.float32)
    rows = embed_golden(encoder)
    return float((rows * expected / np.linalg.norm(expected, axis=1, keepdims=True)).sum(axis=1).min())
