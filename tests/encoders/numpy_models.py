"""The forward passes of DINOv2, SigLIP and MobileCLIP-B in float64 numpy, by the names of the published files."""

from __future__ import annotations

import numpy as np
from scipy.special import erf, softmax

from tests.encoders.small_models import DINO_GRID, DINO_PATCH, HEADS, LAYERS, SIGLIP_PATCH, WIDTH

Weights = dict[str, np.ndarray]


def dinov2(weights: Weights, pixels: np.ndarray, resize: np.ndarray) -> np.ndarray:
    """Embed images; `resize` is the (side, DINO_GRID) matrix that interpolates the positions along one axis."""
    x = _convolve(weights, pixels, "embeddings.patch_embeddings.projection", DINO_PATCH)
    old = weights["embeddings.position_embeddings"][0].astype(np.float64)
    grid = np.einsum("ip,jq,pqd->ijd", resize, resize, old[1:].reshape(DINO_GRID, DINO_GRID, WIDTH))
    x = _with_class_token(weights["embeddings.cls_token"] + old[0], _tokens(x) + grid.reshape(-1, WIDTH))
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}."
        y = norm(weights, x, f"{layer}norm1")
        parts = [linear(weights, y, f"{layer}attention.attention.{part}") for part in ("query", "key", "value")]
        mixed = linear(weights, attend(*parts), f"{layer}attention.output.dense")
        x = x + weights[f"{layer}layer_scale1.lambda1"] * mixed
        inner = gelu(linear(weights, norm(weights, x, f"{layer}norm2"), f"{layer}mlp.fc1"))
        x = x + weights[f"{layer}layer_scale2.lambda1"] * linear(weights, inner, f"{layer}mlp.fc2")
    return unit(norm(weights, x, "layernorm")[:, 0])


def siglip_image(weights: Weights, pixels: np.ndarray) -> np.ndarray:
    x = _tokens(_convolve(weights, pixels, "vision_model.embeddings.patch_embedding", SIGLIP_PATCH))
    x = _siglip_layers(weights, x + weights["vision_model.embeddings.position_embedding.weight"], "vision_model")
    x = norm(weights, x, "vision_model.post_layernorm")
    head = "vision_model.head"
    w, b = (np.split(weights[f"{head}.attention.in_proj_{leaf}"].astype(np.float64), 3) for leaf in ("weight", "bias"))
    probe = np.broadcast_to(weights[f"{head}.probe"], (len(x), 1, WIDTH))
    parts = [tokens @ w[at].T + b[at] for at, tokens in enumerate((probe, x, x))]
    y = linear(weights, attend(*parts), f"{head}.attention.out_proj")
    inner = gelu_tanh(linear(weights, norm(weights, y, f"{head}.layernorm"), f"{head}.mlp.fc1"))
    return unit((y + linear(weights, inner, f"{head}.mlp.fc2"))[:, 0])


def siglip_text(weights: Weights, ids: list[int]) -> np.ndarray:
    """Embed one padded row of tokens."""
    x = weights["text_model.embeddings.token_embedding.weight"][ids].astype(np.float64)[None]
    x = _siglip_layers(weights, x + weights["text_model.embeddings.position_embedding.weight"], "text_model")
    return unit(linear(weights, norm(weights, x, "text_model.final_layer_norm")[:, -1], "text_model.head"))


def mobileclip_image(weights: Weights, pixels: np.ndarray) -> np.ndarray:
    trunk = "visual.trunk"
    x = pixels
    for number, side in ((0, 4), (1, 2), (2, 2)):
        conv = f"{trunk}.patch_embed.backbone.{number}"
        x = _convolve(weights, x, f"{conv}.conv", side)
        if number < 2:
            scale = weights[f"{conv}.bn.weight"] / np.sqrt(weights[f"{conv}.bn.running_var"].astype(np.float64) + 1e-5)
            shift = weights[f"{conv}.bn.bias"] - scale * weights[f"{conv}.bn.running_mean"]
            x = gelu(x * scale[:, None, None] + shift[:, None, None])
    x = _with_class_token(weights[f"{trunk}.cls_token"], _tokens(x) + weights[f"{trunk}.pos_embed"])
    for number in range(LAYERS):
        block = f"{trunk}.blocks.{number}."
        parts = np.split(linear(weights, norm(weights, x, f"{block}norm1"), f"{block}attn.qkv"), 3, axis=-1)
        x = x + linear(weights, attend(*parts), f"{block}attn.proj")
        inner = gelu(linear(weights, norm(weights, x, f"{block}norm2"), f"{block}mlp.fc1"))
        x = x + linear(weights, inner, f"{block}mlp.fc2")
    return unit(linear(weights, norm(weights, x, f"{trunk}.norm")[:, 0], f"{trunk}.head"))


def _siglip_layers(weights: Weights, x: np.ndarray, tower: str) -> np.ndarray:
    for number in range(LAYERS):
        layer = f"{tower}.encoder.layers.{number}."
        y = norm(weights, x, f"{layer}layer_norm1")
        parts = [linear(weights, y, f"{layer}self_attn.{letter}_proj") for letter in "qkv"]
        x = x + linear(weights, attend(*parts), f"{layer}self_attn.out_proj")
        inner = gelu_tanh(linear(weights, norm(weights, x, f"{layer}layer_norm2"), f"{layer}mlp.fc1"))
        x = x + linear(weights, inner, f"{layer}mlp.fc2")
    return x


def _convolve(weights: Weights, pixels: np.ndarray, name: str, side: int) -> np.ndarray:
    """Return (n, channels, height, width): windows that do not overlap."""
    n, channels, height, width = pixels.shape
    kernel = weights[f"{name}.weight"].astype(np.float64)
    windows = pixels.reshape(n, channels, height // side, side, width // side, side)
    result = np.einsum("nchywx,ocyx->nohw", windows, kernel, optimize=True)
    return result + weights[f"{name}.bias"][:, None, None] if f"{name}.bias" in weights else result


def _tokens(grid: np.ndarray) -> np.ndarray:
    return grid.reshape(*grid.shape[:2], -1).transpose(0, 2, 1)


def _with_class_token(token: np.ndarray, patches: np.ndarray) -> np.ndarray:
    return np.concatenate([np.broadcast_to(token, (len(patches), 1, WIDTH)), patches], axis=1)


def attend(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    query, key, value = (
        part.reshape(*part.shape[:2], HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3) for part in (query, key, value)
    )
    scores = softmax(query @ key.transpose(0, 1, 3, 2) / np.sqrt(WIDTH // HEADS), axis=-1)
    mixed = (scores @ value).transpose(0, 2, 1, 3)
    return mixed.reshape(*mixed.shape[:2], WIDTH)


def linear(weights: Weights, x: np.ndarray, name: str) -> np.ndarray:
    return x @ weights[f"{name}.weight"].T.astype(np.float64) + weights[f"{name}.bias"]


def norm(weights: Weights, x: np.ndarray, name: str) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-6)
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def gelu(x: np.ndarray) -> np.ndarray:
    return x * (1 + erf(x / np.sqrt(2))) / 2


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)
