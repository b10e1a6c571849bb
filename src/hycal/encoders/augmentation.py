"""Several inputs of one image, whose embeddings are averaged: its mirror image, or five crops.

An augmented encoder is named NAME:flip or NAME:crops. Its rows have a fingerprint of their own, so they are never mixed
with those of the plain encoder, and a model that was learned with it names it and is continued with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from PIL import Image

from hycal.encoders.catalog import AUGMENTED_BY, Augmentation
from hycal.encoders.encoder import TowerEncoder
from hycal.encoders.preprocessing import Preprocessing
from hycal.errors import HyCalError
from hycal.validation import Floats

_MARGIN = 8 / 7  # an image is resized to so much more than its crops, as 256 is to 224


def mirrored(preprocessing: Preprocessing, image: Image.Image) -> Floats:
    """Return the (2, 3, size, size) inputs of an image and of its mirror image."""
    pixels = preprocessing.apply(image)
    return np.stack([pixels, pixels[:, :, ::-1]])


def five_crops(preprocessing: Preprocessing, image: Image.Image) -> Floats:
    """Return the (5, 3, size, size) inputs of the centre and the four corners of an image."""
    resize = max(preprocessing.resize, round(preprocessing.size * _MARGIN))
    whole = preprocessing.resized(image, resize)
    side = preprocessing.size
    right, bottom = whole.width - side, whole.height - side
    corners = [(0, 0), (right, 0), (0, bottom), (right, bottom)]
    places = [(round(right / 2), round(bottom / 2)), *corners]
    crops = [whole.crop((left, top, left + side, top + side)) for left, top in places]
    return np.stack([preprocessing.normalised(crop) for crop in crops])


_INPUTS: Mapping[Augmentation, Callable[[Preprocessing, Image.Image], Floats]] = {
    "flip": mirrored,
    "crops": five_crops,
}


class AugmentedEncoder(TowerEncoder):
    """An encoder whose row is the mean of the unit rows of several inputs of an image, again of unit length.

    >>> from hycal.encoders import load_encoder
    >>> load_encoder("builtin:flip").name
    'builtin:flip'
    """

    def __init__(self, plain: TowerEncoder, augmentation: Augmentation) -> None:
        super().__init__(
            name=f"{plain.name}{AUGMENTED_BY}{augmentation}",
            dimension=plain.dimension,
            fingerprint=f"{plain.fingerprint}{AUGMENTED_BY}{augmentation}",
            preprocessing=plain.preprocessing,
            towers=plain.towers,
            no_text=plain.no_text,
            backend=plain.backend,
        )
        self._plain = plain
        self._inputs = _INPUTS[augmentation]

    @property
    def preprocess(self) -> Callable[[Image.Image], Floats]:
        """The function from one image to its (inputs, 3, height, width) array; it can be pickled."""
        return partial(self._inputs, self.preprocessing)

    def encode(self, batch: Floats) -> Floats:
        """Return (n, d) unit embeddings of (n, inputs, 3, height, width) arrays."""
        if batch.ndim != 5:
            raise HyCalError(
                f"{self.name} got a batch of shape {batch.shape}; expected (n, inputs, 3, height, width). Stack the "
                "results of `preprocess`."
            )
        rows = self._plain.encode(batch.reshape(-1, *batch.shape[2:]))
        return self._checked(rows.reshape(*batch.shape[:2], self.dimension).mean(axis=1))
