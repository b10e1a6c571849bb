"""Checkpoints of transformers: CLIP, SigLIP and DINOv2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hycal.encoders.checkpoint import Checkpoint, Tensors, TextShape, TowerShape, activation, split_in_three
from hycal.errors import HyCalError
from hycal.validation import Floats

Settings = Mapping[str, Any]

# A configuration holds only the differences to the defaults of its kind of model.
_CLIP = {"num_hidden_layers": 12, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5}
_CLIP_VISION = {**_CLIP, "num_attention_heads": 12, "image_size": 224}
_CLIP_TEXT = {**_CLIP, "num_attention_heads": 8, "max_position_embeddings": 77}
_SIGLIP = {
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "hidden_act": "gelu_pytorch_tanh",
    "layer_norm_eps": 1e-6,
    "image_size": 224,
    "max_position_embeddings": 64,
}
_DINOV2 = {"num_hidden_layers": 12, "num_attention_heads": 12, "hidden_act": "gelu", "layer_norm_eps": 1e-6}

# Parts of DINOv2's names and of CLIP's, for the published files and for those that transformers 5 writes.
_DINOV2_NAMES = {
    "embeddings.cls_token": "vision_model.embeddings.class_embedding",
    "embeddings.patch_embeddings.projection": "vision_model.embeddings.patch_embedding",
    "embeddings.position_embeddings": "vision_model.embeddings.position_embedding.weight",
    "encoder.layer.": "vision_model.encoder.layers.",
    "layernorm.": "vision_model.post_layernorm.",
    ".norm1.": ".layer_norm1.",
    ".norm2.": ".layer_norm2.",
    ".attention.attention.query.": ".self_attn.q_proj.",
    ".attention.attention.key.": ".self_attn.k_proj.",
    ".attention.attention.value.": ".self_attn.v_proj.",
    ".attention.output.dense.": ".self_attn.out_proj.",
    ".attention.q_proj.": ".self_attn.q_proj.",
    ".attention.k_proj.": ".self_attn.k_proj.",
    ".attention.v_proj.": ".self_attn.v_proj.",
    ".attention.o_proj.": ".self_attn.out_proj.",
}
_LAYER_SCALES = {".layer_scale1.lambda1": ".self_attn.out_proj", ".layer_scale2.lambda1": ".mlp.fc2"}


def from_transformers(settings: Settings, tensors: Tensors, size: int) -> Checkpoint:
    """Return the checkpoint, of the kind that its configuration names; CLIP if it names none."""
    kind = _kind(settings)
    if kind == "dinov2":
        return _dinov2(settings, tensors, size)
    vision = {**(_SIGLIP if kind == "siglip" else _CLIP_VISION), **settings.get("vision_config", {})}
    named = _siglip_names(tensors) if kind == "siglip" else tensors
    return Checkpoint(_shape(vision), vision["image_size"], text_shape(settings), named)


def text_shape(settings: Settings) -> TextShape | None:
    """Return the shape of the text tower, or None if there is none."""
    kind, given = _kind(settings), settings.get("text_config", {})
    if kind == "dinov2":
        return None
    if kind == "clip":
        text = {**_CLIP_TEXT, **given}
        return TextShape(_shape(text), text["max_position_embeddings"])
    text = {**_SIGLIP, **given}
    context = text["max_position_embeddings"]
    return TextShape(_shape(text), context, attention="full", pooling="last", padding="<pad>", case="lower")


def _kind(settings: Settings) -> str:
    kind = settings.get("model_type", "clip")
    if kind not in ("clip", "siglip", "dinov2"):
        raise HyCalError(f"The checkpoint is of the type {kind!r}; expected one of clip, siglip, dinov2.")
    return str(kind)


def _shape(part: Settings) -> TowerShape:
    return TowerShape(
        heads=part["num_attention_heads"],
        layers=part["num_hidden_layers"],
        activation=activation(part["hidden_act"]),
        epsilon=part["layer_norm_eps"],
    )


def _siglip_names(tensors: Tensors) -> Tensors:
    result = {name.replace("text_model.head.", "text_projection."): value for name, value in tensors.items()}
    for leaf in ("weight", "bias"):
        stacked = result.pop(f"vision_model.head.attention.in_proj_{leaf}")
        result |= split_in_three("vision_model.head.attention", leaf, stacked)
    return result


def _dinov2(settings: Settings, tensors: Tensors, size: int) -> Checkpoint:
    if settings.get("use_swiglu_ffn"):
        raise HyCalError("The checkpoint is a DINOv2 with SwiGLU layers; expected the small, base or large one.")
    renamed: Tensors = {}
    for given, value in tensors.items():
        name = given
        for theirs, ours in _DINOV2_NAMES.items():
            name = name.replace(theirs, ours)
        renamed[name] = value
    _fold_layer_scales(renamed)
    positions = "vision_model.embeddings.position_embedding.weight"
    patch = renamed["vision_model.embeddings.patch_embedding.weight"].shape[-1]
    renamed[positions] = interpolate_positions(renamed[positions][0], side=size // patch)
    return Checkpoint(_shape({**_DINOV2, **settings}), size, None, renamed)


def _fold_layer_scales(tensors: Tensors) -> None:
    """Multiply each layer's outputs by its scales, which is exact, and remove the scales."""
    for name in list(tensors):
        for scale, target in _LAYER_SCALES.items():
            if name.endswith(scale):
                gamma, stem = tensors.pop(name), name.removesuffix(scale) + target
                tensors[f"{stem}.weight"] = gamma[:, None] * tensors[f"{stem}.weight"]
                tensors[f"{stem}.bias"] = gamma * tensors[f"{stem}.bias"]


def interpolate_positions(positions: Floats, *, side: int) -> Floats:
    """Return the positions of a class token and a square grid for a grid of another side, by bicubic interpolation.

    Notes
    -----
    As `torch.nn.functional.interpolate` does it with `align_corners=False`: the cubic kernel with a = -0.75, without
    a low-pass filter, edges repeated.
    """
    old = round((len(positions) - 1) ** 0.5)
    if old * old + 1 != len(positions):
        raise HyCalError(f"The checkpoint has {len(positions)} positions; expected a class token and a square grid.")
    if old == side:
        return positions
    resize = _bicubic(old, side)
    grid = positions[1:].astype(np.float64).reshape(old, old, -1)
    new = np.einsum("ip,jq,pqd->ijd", resize, resize, grid, optimize=True).reshape(side * side, -1)
    return np.concatenate([positions[:1], new.astype(np.float32)])


def _bicubic(old: int, new: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the (new, old) matrix of the one-dimensional interpolation."""
    matrix = np.zeros((new, old))
    for row in range(new):
        centre = (row + 0.5) * old / new - 0.5
        first = int(np.floor(centre)) - 1
        for column in range(first, first + 4):
            matrix[row, min(max(column, 0), old - 1)] += _cubic(abs(centre - column))
    return matrix


def _cubic(distance: float) -> float:
    a = -0.75
    if distance <= 1:
        return (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    return a * (distance**3 - 5 * distance**2 + 8 * distance - 4)
