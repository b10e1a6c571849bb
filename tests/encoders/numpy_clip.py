"""CLIP's forward pass in float64 numpy, from the paper's description: the reference for the graphs."""

from __future__ import annotations

import numpy as np
from scipy.special import erf, expit, softmax

from tests.encoders.small_clip import HEADS, LAYERS, PATCH, WIDTH


def image_embeddings(weights: dict[str, np.ndarray], pixels: np.ndarray, activation: str) -> np.ndarray:
    n, _, size, _ = pixels.shape
    grid = size // PATCH
    patches = pixels.reshape(n, 3, grid, PATCH, grid, PATCH).transpose(0, 2, 4, 1, 3, 5).reshape(n, grid * grid, -1)
    kernel = weights["vision_model.embeddings.patch_embedding.weight"].reshape(WIDTH, -1)
    token = np.broadcast_to(weights["vision_model.embeddings.class_embedding"], (n, 1, WIDTH))
    x = np.concatenate([token, patches.astype(np.float64) @ kernel.T], axis=1)
    x = x + weights["vision_model.embeddings.position_embedding.weight"]
    x = _transformer(weights, _norm(weights, x, "vision_model.pre_layrnorm"), "vision_model", activation, mask=0.0)
    return _unit(_norm(weights, x[:, 0], "vision_model.post_layernorm") @ weights["visual_projection.weight"].T)


def text_embeddings(weights: dict[str, np.ndarray], ids: list[int], activation: str) -> np.ndarray:
    """Embed one text, without padding: what follows the end token must not matter."""
    x = weights["text_model.embeddings.token_embedding.weight"][ids].astype(np.float64)[None]
    x = x + weights["text_model.embeddings.position_embedding.weight"][: len(ids)]
    mask = np.triu(np.full((len(ids), len(ids)), -np.inf), 1)
    x = _norm(weights, _transformer(weights, x, "text_model", activation, mask), "text_model.final_layer_norm")
    return _unit(x[:, -1] @ weights["text_projection.weight"].T)


def _transformer(weights, x, tower, activation, mask):
    for number in range(LAYERS):
        layer = f"{tower}.encoder.layers.{number}"
        normed = _norm(weights, x, f"{layer}.layer_norm1")
        q, k, v = (_heads(_linear(weights, normed, f"{layer}.self_attn.{letter}_proj")) for letter in "qkv")
        scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(WIDTH // HEADS) + mask
        mixed = (softmax(scores, axis=-1) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = x + _linear(weights, mixed, f"{layer}.self_attn.out_proj")
        hidden = _linear(weights, _norm(weights, x, f"{layer}.layer_norm2"), f"{layer}.mlp.fc1")
        gate = expit(1.702 * hidden) if activation == "quick_gelu" else (1 + erf(hidden / np.sqrt(2))) / 2
        x = x + _linear(weights, hidden * gate, f"{layer}.mlp.fc2")
    return x


def _heads(x):
    return x.reshape(x.shape[0], x.shape[1], HEADS, -1).transpose(0, 2, 1, 3)


def _linear(weights, x, name):
    return x @ weights[f"{name}.weight"].T.astype(np.float64) + weights[f"{name}.bias"]


def _norm(weights, x, name):
    centred = x - x.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)
