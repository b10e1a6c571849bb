"""A small CLIP in every file format that the ONNX back end reads, against the numpy reference."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hycal.encoders import Encoder, load_encoder
from hycal.encoders.checkpoint_reader import read_checkpoint
from hycal.encoders.clip_graph import image_graph, text_graph
from hycal.encoders.golden import golden_images
from hycal.errors import HyCalError
from tests.encoders import numpy_clip, small_clip

TEXTS = ["a photo of a cat", "", "Ünïcode, 12 cats!", "cat " * 200]
WRITERS = {"transformers": small_clip.write_transformers, "open_clip": small_clip.write_open_clip}


def write_onnx(folder: Path, *, activation: str) -> Path:
    """The layout of a repository of exported graphs."""
    source = small_clip.write_transformers(folder / "source", activation=activation)
    checkpoint = read_checkpoint(source / "config.json", source / "model.safetensors", size=224)
    (folder / "onnx").mkdir()
    (folder / "onnx" / "vision_model.onnx").write_bytes(image_graph(checkpoint))
    (folder / "onnx" / "text_model.onnx").write_bytes(text_graph(checkpoint, checkpoint.text))
    (source / "tokenizer.json").rename(folder / "tokenizer.json")
    return folder


@pytest.mark.parametrize("activation", ["quick_gelu", "gelu"])
@pytest.mark.parametrize("writer", [*WRITERS.values(), write_onnx])
def test_agrees_with_the_reference(writer, activation: str, tmp_path: Path) -> None:
    encoder = load_encoder("clip-vit-b16", weights=writer(tmp_path / "w", activation=activation), threads=1)
    assert isinstance(encoder, Encoder)
    assert encoder.has_text
    weights = small_clip.tensors()
    pixels = np.stack([encoder.preprocess(image) for image in golden_images()])
    images = encoder.encode(pixels)
    np.testing.assert_allclose(images, numpy_clip.image_embeddings(weights, pixels, activation), atol=2e-5)
    other = "gelu" if activation == "quick_gelu" else "quick_gelu"
    assert np.abs(images - numpy_clip.image_embeddings(weights, pixels, other)).max() > 1e-3
    rows = encoder.encode_texts(TEXTS)
    for row, text in zip(rows, TEXTS, strict=True):
        ids = small_clip.tokenizer().encode(text).ids
        ids = ids if len(ids) <= 77 else [*ids[:76], ids[-1]]
        np.testing.assert_allclose(row, numpy_clip.text_embeddings(weights, ids, activation)[0], atol=2e-5)


def test_rows_do_not_depend_on_their_neighbours(tmp_path: Path) -> None:
    encoder = load_encoder("clip-vit-b32", weights=small_clip.write_transformers(tmp_path, activation="gelu"))
    pixels = np.stack([encoder.preprocess(image) for image in golden_images()])
    alone = np.concatenate([encoder.encode(row[None]) for row in pixels])
    np.testing.assert_array_equal(encoder.encode(pixels), alone)


def test_fingerprint_follows_activation_and_tokenizer(tmp_path: Path) -> None:
    folder = small_clip.write_transformers(tmp_path, activation="quick_gelu")
    first = load_encoder("clip-vit-b16", weights=folder).fingerprint
    assert load_encoder("clip-vit-b16", weights=folder).fingerprint == first
    other = small_clip.write_transformers(tmp_path / "gelu", activation="gelu")
    assert load_encoder("clip-vit-b16", weights=other).fingerprint != first
    (folder / "tokenizer.json").write_text((folder / "tokenizer.json").read_text() + "\n")
    assert load_encoder("clip-vit-b16", weights=folder).fingerprint != first


def test_empty_batches(tmp_path: Path) -> None:
    encoder = load_encoder("clip-vit-b16", weights=small_clip.write_transformers(tmp_path, activation="gelu"))
    assert encoder.encode(np.empty((0, 3, 224, 224), np.float32)).shape == (0, 512)
    assert encoder.encode_texts([]).shape == (0, 512)
    with pytest.raises(HyCalError, match=r"shape \(3, 224, 224\); expected \(n, 3, 224, 224\)"):
        encoder.encode(np.empty((3, 224, 224), np.float32))
    with pytest.raises(HyCalError, match=r"Pass \['cat'\]"):
        encoder.encode_texts("cat")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_damaged_file_is_named(name: str, tmp_path: Path) -> None:
    folder = small_clip.write_transformers(tmp_path, activation="gelu")
    (folder / name).write_bytes(b"not what you think")
    with pytest.raises(HyCalError, match=f"{name}.*(again|Expected)"):
        load_encoder("clip-vit-b16", weights=folder)


def test_unknown_activation(tmp_path: Path) -> None:
    folder = small_clip.write_transformers(tmp_path, activation="relu")
    with pytest.raises(HyCalError, match=r"activation 'relu'; expected one of \['gelu', .*'quick_gelu'\]"):
        load_encoder("clip-vit-b16", weights=folder)


def test_checkpoint_that_is_not_a_vision_transformer(tmp_path: Path) -> None:
    folder = small_clip.write_open_clip(tmp_path, activation="gelu")
    config = json.loads((folder / "open_clip_config.json").read_text())
    del config["model_cfg"]["vision_cfg"]["width"]
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    with pytest.raises(HyCalError, match="lacks 'width'"):
        load_encoder("datacomp-vit-b16", weights=folder)
