"""Checkpoints of open_clip: CLIP with its own vision transformer, or with one of timm (MobileCLIP-B, MobileCLIP2-B)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hycal.encoders.checkpoint import (
    Activation,
    Checkpoint,
    Tensors,
    TextShape,
    TowerShape,
    count_layers,
    split_in_three,
)
from hycal.validation import Floats

Settings = Mapping[str, Any]

_NAMES = {
    "visual.class_embedding": "vision_model.embeddings.class_embedding",
    "visual.conv1.weight": "vision_model.embeddings.patch_embedding.weight",
    "visual.positional_embedding": "vision_model.embeddings.position_embedding.weight",
    "visual.ln_pre": "vision_model.pre_layrnorm",
    "visual.ln_post": "vision_model.post_layernorm",
    "visual.trunk.norm": "vision_model.post_layernorm",
    "visual.trunk.head": "visual_projection",
    "token_embedding.weight": "text_model.embeddings.token_embedding.weight",
    "positional_embedding": "text_model.embeddings.position_embedding.weight",
    "ln_final": "text_model.final_layer_norm",
}
_LAYER = {
    "ln_1": "layer_norm1",
    "ln_2": "layer_norm2",
    "norm1": "layer_norm1",
    "norm2": "layer_norm2",
    "mlp.c_fc": "mlp.fc1",
    "mlp.c_proj": "mlp.fc2",
    "mlp.fc1": "mlp.fc1",
    "mlp.fc2": "mlp.fc2",
    "attn.out_proj": "self_attn.out_proj",
    "attn.proj": "self_attn.out_proj",
}
_STACKED = {"attn.in_proj_weight", "attn.in_proj_bias", "attn.qkv.weight", "attn.qkv.bias"}
_BLOCKS = {  # where the numbered layers of a tower are
    "visual.transformer.resblocks.": "vision_model",
    "visual.trunk.blocks.": "vision_model",
    "transformer.resblocks.": "text_model",
}
_TRUNK = "visual.trunk"
_HEAD_WIDTH = 64
_TIMM_EPSILON = 1e-6
_BATCH_NORM_EPSILON = 1e-5


def from_open_clip(settings: Settings, tensors: Tensors) -> Checkpoint:
    """Return the checkpoint; the text tower has its names with or without the prefix `text.`."""
    vision = settings["model_cfg"]["vision_cfg"]
    plain = {name.removeprefix("text."): value for name, value in tensors.items()}
    renamed = _renamed(plain)
    if "timm_model_name" in vision:
        renamed |= _trunk_embeddings(plain)
        width = plain[f"{_TRUNK}.cls_token"].shape[-1]
        layers = count_layers(plain, f"{_TRUNK}.blocks.")
        image = TowerShape(width // _HEAD_WIDTH, layers, "gelu", _TIMM_EPSILON)
    else:
        renamed["visual_projection.weight"] = np.ascontiguousarray(plain["visual.proj"].T)
        heads = vision["width"] // vision.get("head_width", _HEAD_WIDTH)
        image = TowerShape(heads, vision["layers"], _activation(settings))
    return Checkpoint(image, vision["image_size"], text_shape(settings), renamed)


def text_shape(settings: Settings) -> TextShape:
    """Return the shape of the text tower."""
    text = settings["model_cfg"]["text_cfg"]
    tower = TowerShape(text["heads"], text["layers"], _activation(settings))
    return TextShape(tower, text["context_length"], attention="full" if text.get("no_causal_mask") else "causal")


def _activation(settings: Settings) -> Activation:
    """Return GELU, unless the configuration says quick_gelu, as it does for OpenAI's weights."""
    return "quick_gelu" if settings["model_cfg"].get("quick_gelu", False) else "gelu"


def _renamed(tensors: Tensors) -> Tensors:
    """Return the tensors under the names of transformers; query, key and value are split."""
    result: Tensors = {"text_projection.weight": np.ascontiguousarray(tensors["text_projection"].T)}
    for name, value in tensors.items():
        stem, _, leaf = name.rpartition(".")
        blocks = next((prefix for prefix in _BLOCKS if name.startswith(prefix)), None)
        if name in _NAMES:
            result[_NAMES[name]] = value
        elif stem in _NAMES:
            result[f"{_NAMES[stem]}.{leaf}"] = value
        elif blocks is not None:
            number, _, inner = name.removeprefix(blocks).partition(".")
            result |= _renamed_layer(f"{_BLOCKS[blocks]}.encoder.layers.{number}", inner, value)
    return result


def _renamed_layer(prefix: str, inner: str, value: Floats) -> Tensors:
    if inner in _STACKED:
        return split_in_three(f"{prefix}.self_attn", "weight" if inner.endswith("weight") else "bias", value)
    stem, _, leaf = inner.rpartition(".")
    return {f"{prefix}.{_LAYER[stem]}.{leaf}": value}


def _trunk_embeddings(tensors: Tensors) -> Tensors:
    """Return the first part of timm's transformer: convolutions, the last of which makes the patches, and positions."""
    stem = f"{_TRUNK}.patch_embed.backbone"
    ours = "vision_model.embeddings"
    last = count_layers(tensors, f"{stem}.") - 1
    token, positions = tensors[f"{_TRUNK}.cls_token"], tensors[f"{_TRUNK}.pos_embed"]
    result: Tensors = {
        f"{ours}.class_embedding": token,
        f"{ours}.patch_embedding.weight": tensors[f"{stem}.{last}.conv.weight"],
        f"{ours}.patch_embedding.bias": tensors[f"{stem}.{last}.conv.bias"],
        # The class token has no position.
        f"{ours}.position_embedding.weight": np.concatenate([np.zeros_like(token[0]), positions[0]]),
    }
    for number in range(last):
        kernel, norm = tensors[f"{stem}.{number}.conv.weight"], f"{stem}.{number}.bn"
        scale = tensors[f"{norm}.weight"] / np.sqrt(tensors[f"{norm}.running_var"] + _BATCH_NORM_EPSILON)
        result[f"{ours}.stem.{number}.weight"] = kernel * scale[:, None, None, None]
        result[f"{ours}.stem.{number}.bias"] = tensors[f"{norm}.bias"] - scale * tensors[f"{norm}.running_mean"]
    return result
