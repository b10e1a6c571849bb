"""Checkpoints that are not CLIP, in their published formats, against a reference in numpy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hycal.encoders import catalog as catalog_module
from hycal.encoders import load_encoder
from hycal.encoders.checkpoint_transformers import interpolate_positions
from hycal.encoders.golden import golden_images
from hycal.encoders.installation import install
from hycal.encoders.status import check_files
from hycal.errors import HyCalError
from tests.encoders import numpy_clip, numpy_models, small_clip, small_models

TEXTS = ["a Cat", "", "cat " * 30]
WRITERS = {
    "dinov2-b": small_models.write_dinov2,
    "siglip2-b16": small_models.write_siglip,
    "mobileclip2-b": small_models.write_mobileclip,
}


@pytest.fixture(autouse=True)
def small_widths(monkeypatch: pytest.MonkeyPatch) -> None:
    small_models.use_small_widths(monkeypatch)


def pixels_of(encoder) -> np.ndarray:
    return np.stack([encoder.preprocess(image) for image in golden_images()])


def test_dinov2_agrees_with_the_reference(tmp_path: Path) -> None:
    encoder = load_encoder("dinov2-b", weights=small_models.write_dinov2(tmp_path), threads=1)
    pixels = pixels_of(encoder)
    resize = bicubic_by_definition(small_models.DINO_GRID, 224 // small_models.DINO_PATCH)
    expected = numpy_models.dinov2(small_models.dinov2_tensors(), pixels, resize)
    np.testing.assert_allclose(encoder.encode(pixels), expected, atol=2e-5)
    assert not encoder.has_text
    with pytest.raises(HyCalError, match="embeds images only"):
        encoder.encode_texts(["a cat"])


def bicubic_by_definition(old: int, new: int) -> np.ndarray:
    """The cubic kernel of torch (a = -0.75) at the distances between sample points, edges repeated far outwards."""
    far = 4
    centres = (np.arange(new) + 0.5) * old / new - 0.5
    distance = np.abs(centres[:, None] - np.arange(-far, old + far))
    near = 1.25 * distance**3 - 2.25 * distance**2 + 1
    wide = -0.75 * distance**3 + 3.75 * distance**2 - 6 * distance + 3
    padded = np.where(distance <= 1, near, np.where(distance < 2, wide, 0.0))
    matrix = padded[:, far : far + old].copy()
    matrix[:, 0] += padded[:, :far].sum(axis=1)
    matrix[:, -1] += padded[:, far + old :].sum(axis=1)
    return matrix


@pytest.mark.parametrize("side", [3, 7, 16, 37])
def test_interpolated_positions(side: int) -> None:
    random = np.random.default_rng(0)
    positions = random.standard_normal((1 + 49, 5)).astype(np.float32)
    found = interpolate_positions(positions, side=side)
    matrix = bicubic_by_definition(7, side)
    expected = np.einsum("ip,jq,pqd->ijd", matrix, matrix, positions[1:].reshape(7, 7, 5)).reshape(-1, 5)
    np.testing.assert_allclose(found[1:], expected, atol=1e-6)
    np.testing.assert_array_equal(found[0], positions[0])
    np.testing.assert_allclose(matrix.sum(axis=1), 1)


def test_siglip_agrees_with_the_reference(tmp_path: Path) -> None:
    encoder = load_encoder("siglip2-b16", weights=small_models.write_siglip(tmp_path), threads=1)
    weights = small_models.siglip_tensors()
    pixels = pixels_of(encoder)
    np.testing.assert_allclose(encoder.encode(pixels), numpy_models.siglip_image(weights, pixels), atol=2e-5)
    tokenizer = small_models.gemma_tokenizer()
    context = small_models.SIGLIP_CONTEXT
    for row, text in zip(encoder.encode_texts(TEXTS), TEXTS, strict=True):
        ids = tokenizer.encode(text.lower()).ids
        ids = [*ids[: context - 1], 1] if len(ids) > context else ids + [0] * (context - len(ids))
        np.testing.assert_allclose(row, numpy_models.siglip_text(weights, ids)[0], atol=2e-5)


def test_siglip_sees_the_whole_image(tmp_path: Path) -> None:
    encoder = load_encoder("siglip2-b16", weights=small_models.write_siglip(tmp_path), threads=1)
    wide = Image.new("RGB", (600, 200))
    wide.paste((255, 255, 255), (0, 0, 60, 200))  # a crop to the centre would lose it
    seen = encoder.preprocess(wide)
    assert seen.shape == (3, 224, 224) and seen[0, 100, 5] == 1 and seen[0, 100, 200] == -1


def test_mobileclip_agrees_with_the_reference(tmp_path: Path) -> None:
    encoder = load_encoder("mobileclip2-b", weights=small_models.write_mobileclip(tmp_path), threads=1)
    pixels = pixels_of(encoder)
    expected = numpy_models.mobileclip_image(small_models.mobileclip_tensors(), pixels)
    np.testing.assert_allclose(encoder.encode(pixels), expected, atol=2e-5)
    ids = small_clip.tokenizer().encode("a photo of a cat").ids
    text = numpy_clip.text_embeddings(small_clip.tensors(), ids, "gelu")[0]
    np.testing.assert_allclose(encoder.encode_texts(["a photo of a cat"])[0], text, atol=2e-5)


@pytest.mark.parametrize("name", WRITERS)
def test_a_folder_is_kept_in_the_cache(name: str, tmp_path: Path, empty_cache: Path) -> None:
    install(name, weights=WRITERS[name](tmp_path / "w"))
    status = check_files(catalog_module.find_encoder(name))
    assert status.ready and status.text == ("no" if name == "dinov2-b" else "yes")
    assert load_encoder(name).fingerprint == load_encoder(name, weights=tmp_path / "w").fingerprint


def rewrite_config(folder: Path, file: str, **changes: object) -> None:
    config = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps({**config, **changes}))


def test_kinds_that_cannot_be_built_are_named(tmp_path: Path) -> None:
    folder = small_models.write_dinov2(tmp_path / "dino")
    rewrite_config(folder, "config.json", model_type="swin")
    with pytest.raises(HyCalError, match="type 'swin'; expected one of clip, siglip, dinov2"):
        load_encoder("dinov2-b", weights=folder)
    rewrite_config(folder, "config.json", model_type="dinov2", use_swiglu_ffn=True)
    with pytest.raises(HyCalError, match="SwiGLU"):
        load_encoder("dinov2-b", weights=folder)
    (folder / "config.json").write_text("[1]")
    with pytest.raises(HyCalError, match=r"config.json cannot be read.*JSON object.*list"):
        load_encoder("dinov2-b", weights=folder)


def test_weights_of_one_kind_with_the_configuration_of_another(tmp_path: Path) -> None:
    folder = small_models.write_siglip(tmp_path)
    rewrite_config(folder, "config.json", model_type="dinov2")
    with pytest.raises(HyCalError, match=r"has \d+ positions; expected a class token and a square grid\.$"):
        load_encoder("dinov2-b", weights=folder)
    folder = small_models.write_siglip(tmp_path / "deeper")
    rewrite_config(folder, "config.json", vision_config={"num_hidden_layers": 3, "num_attention_heads": 2})
    with pytest.raises(HyCalError, match=r"no tensor 'vision_model.encoder.layers.2.*get the files"):
        load_encoder("siglip2-b16", weights=folder)
