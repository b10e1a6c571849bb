"""A CLIP checkpoint as named tensors, read from the files of transformers or of open_clip.

A folder holds `config.json` and `model.safetensors` (transformers), or `open_clip_config.json` and
`open_clip_model.safetensors` (open_clip). In both cases the tensors get the names of transformers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from hycal.errors import HyCalError
from hycal.validation import Floats

Activation = Literal["quick_gelu", "gelu"]
Tensors = Mapping[str, Floats]


@dataclass(frozen=True)
class TowerShape:
    """Heads, layers, activation and layer-norm epsilon of one tower."""

    heads: int
    layers: int
    activation: Activation
    epsilon: float = 1e-5


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Both towers of a CLIP model."""

    image: TowerShape
    text: TowerShape
    image_size: int
    patch: int
    context: int
    tensors: Tensors


def read_checkpoint(config: Path, weights: Path) -> Checkpoint:
    """Read a checkpoint from its configuration and its safetensors file."""
    try:
        settings = json.loads(config.read_text(encoding="utf-8"))
        tensors = {name: value.astype(np.float32) for name, value in load_file(weights).items()}
    except (SafetensorError, ValueError, OSError) as error:
        raise HyCalError(
            f"{weights} with {config.name} cannot be read: {error}. Expected a CLIP checkpoint as published by "
            "transformers or open_clip; get the files again."
        ) from None
    try:
        return _from_open_clip(settings, tensors) if "model_cfg" in settings else _from_transformers(settings, tensors)
    except KeyError as error:
        raise HyCalError(
            f"{weights} with {config.name} lacks {error}. Expected a CLIP checkpoint with a vision transformer."
        ) from None


def _activation(name: str) -> Activation:
    known: dict[str, Activation] = {"quick_gelu": "quick_gelu", "gelu": "gelu"}
    if name not in known:
        raise HyCalError(f"The checkpoint uses the activation {name!r}; expected one of {sorted(known)}.")
    return known[name]


def _from_transformers(settings: Mapping[str, Any], tensors: Tensors) -> Checkpoint:
    # A configuration holds only the differences to the defaults, which are those of ViT-B/32.
    vision = {**_VISION_DEFAULTS, **settings.get("vision_config", {})}
    text = {**_TEXT_DEFAULTS, **settings.get("text_config", {})}
    shapes = [
        TowerShape(
            heads=part["num_attention_heads"],
            layers=part["num_hidden_layers"],
            activation=_activation(part["hidden_act"]),
            epsilon=part["layer_norm_eps"],
        )
        for part in (vision, text)
    ]
    return Checkpoint(
        image=shapes[0],
        text=shapes[1],
        image_size=vision["image_size"],
        patch=vision["patch_size"],
        context=text["max_position_embeddings"],
        tensors=tensors,
    )


_SHARED_DEFAULTS = {"num_hidden_layers": 12, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5}
_VISION_DEFAULTS = {**_SHARED_DEFAULTS, "num_attention_heads": 12, "image_size": 224, "patch_size": 32}
_TEXT_DEFAULTS = {**_SHARED_DEFAULTS, "num_attention_heads": 8, "max_position_embeddings": 77}


def _from_open_clip(settings: Mapping[str, Any], tensors: Tensors) -> Checkpoint:
    model = settings["model_cfg"]
    vision, text = model["vision_cfg"], model["text_cfg"]
    # Models of open_clip use GELU unless the configuration says quick_gelu, as it does for OpenAI's weights.
    activation: Activation = "quick_gelu" if model.get("quick_gelu", False) else "gelu"
    return Checkpoint(
        image=TowerShape(vision["width"] // vision.get("head_width", 64), vision["layers"], activation),
        text=TowerShape(text["heads"], text["layers"], activation),
        image_size=vision["image_size"],
        patch=vision["patch_size"],
        context=text["context_length"],
        tensors=_renamed(tensors),
    )


_OPEN_CLIP_NAMES = {
    "visual.class_embedding": "vision_model.embeddings.class_embedding",
    "visual.conv1.weight": "vision_model.embeddings.patch_embedding.weight",
    "visual.positional_embedding": "vision_model.embeddings.position_embedding.weight",
    "visual.ln_pre": "vision_model.pre_layrnorm",
    "visual.ln_post": "vision_model.post_layernorm",
    "token_embedding.weight": "text_model.embeddings.token_embedding.weight",
    "positional_embedding": "text_model.embeddings.position_embedding.weight",
    "ln_final": "text_model.final_layer_norm",
}
_OPEN_CLIP_LAYER = {
    "ln_1": "layer_norm1",
    "ln_2": "layer_norm2",
    "mlp.c_fc": "mlp.fc1",
    "mlp.c_proj": "mlp.fc2",
    "attn.out_proj": "self_attn.out_proj",
}


def _renamed(tensors: Tensors) -> Tensors:
    """Return tensors of open_clip under the names of transformers; query, key and value are split."""
    result: dict[str, Floats] = {
        "visual_projection.weight": np.ascontiguousarray(tensors["visual.proj"].T),
        "text_projection.weight": np.ascontiguousarray(tensors["text_projection"].T),
    }
    for name, value in tensors.items():
        stem, _, leaf = name.rpartition(".")
        if name in _OPEN_CLIP_NAMES:
            result[_OPEN_CLIP_NAMES[name]] = value
        elif stem in _OPEN_CLIP_NAMES:
            result[f"{_OPEN_CLIP_NAMES[stem]}.{leaf}"] = value
        elif ".resblocks." in f".{name}":
            result.update(_renamed_layer(name, value))
    return result


def _renamed_layer(name: str, value: Floats) -> Tensors:
    tower = "vision_model" if name.startswith("visual.") else "text_model"
    number, _, inner = name.partition("resblocks.")[2].partition(".")
    prefix = f"{tower}.encoder.layers.{number}"
    if inner in ("attn.in_proj_weight", "attn.in_proj_bias"):
        leaf = inner.rpartition("_")[2]
        parts = zip("qkv", np.split(value, 3), strict=True)
        return {f"{prefix}.self_attn.{letter}_proj.{leaf}": part for letter, part in parts}
    stem, _, leaf = inner.rpartition(".")
    return {f"{prefix}.{_OPEN_CLIP_LAYER[stem]}.{leaf}": value}
