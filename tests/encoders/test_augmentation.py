"""Averaged embeddings of the inputs of one image."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from PIL import Image

from hycal.encoders import Encoder, load_encoder
from hycal.encoders.catalog import augmented_name, find_encoder
from hycal.encoders.golden import embed_golden, golden_images
from hycal.errors import HyCalError


@pytest.mark.parametrize("how", ["flip", "crops"])
def test_rows_are_the_means_of_plain_rows(how: str, builtin) -> None:
    encoder = load_encoder(f"builtin:{how}", threads=1)
    assert isinstance(encoder, Encoder)
    for image, row in zip(golden_images(), embed_golden(encoder), strict=True):
        inputs = _by_hand(image, how)
        plain = builtin.encode(np.stack([builtin.preprocess(one) for one in inputs])).astype(np.float64)
        expected = plain.mean(axis=0)
        assert row @ (expected / np.linalg.norm(expected)) > 0.9995
        np.testing.assert_allclose(np.linalg.norm(row), 1, atol=1e-6)


def _by_hand(image: Image.Image, how: str) -> list[Image.Image]:
    """Return images that the plain preprocessing takes as they are: squares of 224 pixels."""
    if how == "flip":
        return [image, image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)]
    short = min(image.size)
    whole = image.resize([int(256 * side / short) for side in image.size], Image.Resampling.BICUBIC)
    right, bottom = whole.width - 224, whole.height - 224
    places = [(0, 0), (0, bottom), (right, 0), (right, bottom), (round(right / 2), round(bottom / 2))]
    return [whole.crop((left, top, left + 224, top + 224)) for left, top in places]


def test_a_mirror_image_has_the_same_row() -> None:
    encoder = load_encoder("builtin:flip", threads=1)
    image = golden_images()[0]
    both = [image, image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)]
    rows = encoder.encode(np.stack([encoder.preprocess(one) for one in both]))
    assert rows[0] @ rows[1] > 1 - 1e-6


def test_spaces_of_their_own(builtin) -> None:
    prints = {builtin.fingerprint, *(load_encoder(f"builtin:{how}").fingerprint for how in ("flip", "crops"))}
    assert len(prints) == 3
    assert load_encoder("BUILTIN:Flip", like=f"{builtin.fingerprint}:flip").fingerprint in prints


def test_rows_do_not_depend_on_their_neighbours_and_preprocessing_can_be_pickled() -> None:
    encoder = load_encoder("builtin:crops", threads=1)
    preprocess = pickle.loads(pickle.dumps(encoder.preprocess))
    batch = np.stack([preprocess(image) for image in golden_images()])
    np.testing.assert_array_equal(encoder.encode(batch), np.concatenate([encoder.encode(one[None]) for one in batch]))
    assert encoder.encode(batch[:0]).shape == (0, 512)
    with pytest.raises(HyCalError, match=r"expected \(n, inputs, 3, height, width\)"):
        encoder.encode(batch[:, 0])


def test_names() -> None:
    assert find_encoder("builtin:flip").plain_name == "builtin"
    assert augmented_name("builtin", "crops") == "builtin:crops"
    with pytest.raises(HyCalError, match=r"no augmentation 'flop' in 'builtin:flop'; expected one of flip, crops"):
        find_encoder("builtin:flop")
    with pytest.raises(HyCalError, match="no augmentation ''"):
        find_encoder("builtin:")
    with pytest.raises(HyCalError, match="'builtin:flip' is augmented already"):
        augmented_name("builtin:flip", "crops")
    with pytest.raises(HyCalError, match=r"no encoder 'bultin:flip'.*Did you mean"):
        find_encoder("bultin:flip")
