"""The real CLIP ViT-B/16 with 8-bit weights; skipped where it was not fetched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hycal.encoders.golden import check_golden
from hycal.errors import HyCalError
from tests.support.data import DATA, needs

DISCIPLINES = ["aircraft", "art", "digit", "flower", "galaxy", "medical", "satellite", "texture"]


def test_golden_vectors(w8) -> None:
    assert check_golden(w8, tolerance=0.999) > 0.999
    assert w8.fingerprint == "94ae210cbd7bdbcb8ea576e298188876"


def as_the_reference_cropped(image: Image.Image) -> Image.Image:
    """Resize as CLIP does, then crop with half pixels rounded down.

    The independent embeddings were cropped like this, which is transformers' rule. CLIP's own rule, and ours, rounds
    half pixels to even (torchvision). Where the two differ, the crop moves by one pixel and the cosine falls as low as
    0.985; so their crop is made here, and what is compared is the encoder.
    """
    width, height = image.size
    short = min(width, height)
    image = image.resize((int(224 * width / short), int(224 * height / short)), Image.Resampling.BICUBIC)
    left, top = (image.width - 224) // 2, (image.height - 224) // 2
    return image.crop((left, top, left + 224, top + 224))


@needs("xd8-images")
@needs("clip-vitb16")
def test_agrees_with_independent_embeddings(w8) -> None:
    batch, expected = [], []
    for discipline in DISCIPLINES:
        with np.load(DATA / "clip-vitb16" / f"{discipline}.npz") as file:
            name, row = str(file["class_names"][-1]), int(np.flatnonzero(file["test_y"] == file["test_y"].max())[0])
            expected.append(file["test_x"][row].astype(np.float32))
        first = min((DATA / "xd8-images" / discipline / "test" / name).iterdir())
        with Image.open(first) as image:
            batch.append(w8.preprocess(as_the_reference_cropped(image)))
    cosines = (w8.encode(np.stack(batch)) * np.stack(expected)).sum(axis=1)
    assert cosines.min() > 0.99


def test_texts_need_the_files_of_the_full_model(w8, empty_cache: Path) -> None:
    if w8.has_text:
        pytest.skip("the text files of clip-vit-b16 are on this machine")
    with pytest.raises(HyCalError, match=r"text files of 'clip-vit-b16'.*text_model.onnx"):
        w8.encode_texts(["a cat"])
