"""The real DINOv2-S and TinyViT-5M; skipped where they were not fetched."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from safetensors.numpy import save_file

from hycal.encoders import catalog, load_encoder
from hycal.encoders.catalog import find_encoder
from hycal.encoders.files import locate
from hycal.encoders.golden import check_golden, embed_golden

FINGERPRINTS = {
    "dinov2-s": "d41f1a8207528e8452b9bf8e0a8d01cd",
    "dinov2-s-patches": "2e26e0e0b6732f3fadcefd2bfabdb48e",
    "tinyvit-5m": "8b1b1d0f621c052241e0ff765d1ed2da",
}


def fetched(name: str):
    spec = find_encoder(name)
    if locate(spec).missing:
        pytest.skip(f"needs {name}: run `hycal encoders get {name}`")
    return load_encoder(name, backend="onnx", threads=1)


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_golden_vectors(name: str) -> None:
    encoder = fetched(name)
    assert check_golden(encoder, tolerance=0.999) > 0.999
    assert encoder.fingerprint == FINGERPRINTS[name]
    assert not encoder.has_text


def test_the_graph_of_dinov2_is_the_published_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its weights, written as the checkpoint of transformers, give the same embeddings.

    The graph interpolates the positions of patches linearly, transformers by cubics; so the cosine is not one. The
    position of the class token and the class token itself are equal; the graph has one tensor for both.
    """
    encoder = fetched("dinov2-s")
    table = catalog._table()
    for entry in table["encoder"]:
        if entry["name"] == "dinov2-b":
            entry["dimension"] = 384
    monkeypatch.setattr(catalog, "_table", lambda: table)
    built = load_encoder("dinov2-b", weights=write_checkpoint(tmp_path), threads=1)
    assert built.preprocessing == encoder.preprocessing
    cosines = (embed_golden(encoder) * embed_golden(built)).sum(axis=1)
    assert cosines.min() > 0.998


def write_checkpoint(folder: Path) -> Path:
    """Write the weights of the graph in the cache as `Dinov2Model.save_pretrained` would."""
    graph = onnx.load(str(locate(find_encoder("dinov2-s")).found["image"])).graph
    stored = {tensor.name.removeprefix("model."): numpy_helper.to_array(tensor) for tensor in graph.initializer}
    products = {
        node.name: stored[node.input[1]] for node in graph.node if node.op_type == "MatMul" and node.input[1] in stored
    }
    grid = next(value for value in stored.values() if value.shape == (1, 1369, 384))
    tensors = {
        "embeddings.cls_token": stored["cls_token"],
        "embeddings.position_embeddings": np.concatenate([stored["cls_token"], grid], axis=1),
        "layernorm.weight": stored["norm.weight"],
        "layernorm.bias": stored["norm.bias"],
    }
    for leaf in ("weight", "bias"):
        tensors[f"embeddings.patch_embeddings.projection.{leaf}"] = stored[f"patch_embed.proj.{leaf}"]
    for number in range(12):
        tensors |= layer(number, stored, products)
    save_file({name: np.ascontiguousarray(value) for name, value in tensors.items()}, folder / "model.safetensors")
    config = {"model_type": "dinov2", "hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6}
    (folder / "config.json").write_text(json.dumps({**config, "image_size": 518, "patch_size": 14}))
    return folder


def layer(number: int, stored: dict[str, np.ndarray], products: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the tensors of one layer; the graph has the transposed matrices under the names of their products."""
    ours, theirs = f"encoder.layer.{number}", f"blocks.{number}"
    result = {}
    matrix = products[f"/{theirs}/attn/qkv/MatMul"].T
    biases = np.split(stored[f"{theirs}.attn.qkv.bias"], 3)
    for part, weight, bias in zip(("query", "key", "value"), np.split(matrix, 3), biases, strict=True):
        result[f"{ours}.attention.attention.{part}.weight"] = weight
        result[f"{ours}.attention.attention.{part}.bias"] = bias
    for mine, name in (("attention.output.dense", "attn.proj"), ("mlp.fc1", "mlp.fc1"), ("mlp.fc2", "mlp.fc2")):
        result[f"{ours}.{mine}.weight"] = products[f"/{theirs}/{name.replace('.', '/')}/MatMul"].T
        result[f"{ours}.{mine}.bias"] = stored[f"{theirs}.{name}.bias"]
    for which in (1, 2):
        result[f"{ours}.layer_scale{which}.lambda1"] = stored[f"{theirs}.ls{which}.gamma"]
        for leaf in ("weight", "bias"):
            result[f"{ours}.norm{which}.{leaf}"] = stored[f"{theirs}.norm{which}.{leaf}"]
    return result
