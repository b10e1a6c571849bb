"""Small DINOv2, SigLIP 2 and MobileCLIP2-B models in the published file formats, with random weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from hycal.encoders import catalog
from tests.encoders import small_clip

WIDTH, LAYERS, HEADS = 128, 2, 2
DINO_PATCH, DINO_GRID = 56, 7  # positions of a 7 x 7 grid, for images of 4 x 4 patches
SIGLIP_PATCH, SIGLIP_CONTEXT = 56, 16
MOBILE_DIMENSION = 512


class _Random:
    """Random tensors of order one, by name."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.tensors: dict[str, np.ndarray] = {}

    def normal(self, name: str, *shape: int, scale: float = 0.5, mean: float = 0.0) -> None:
        self.tensors[name] = (mean + scale * self.random.standard_normal(shape)).astype(np.float32)

    def linear(self, name: str, rows: int, columns: int) -> None:
        self.normal(f"{name}.weight", rows, columns, scale=2 * columns**-0.5)
        self.normal(f"{name}.bias", rows, scale=0.1)

    def norm(self, name: str, width: int = WIDTH) -> None:
        self.normal(f"{name}.weight", width, scale=0.1, mean=1)
        self.normal(f"{name}.bias", width, scale=0.1)

    def layer(self, prefix: str, names: dict[str, str], shapes: dict[str, tuple[int, int]]) -> None:
        for part, (rows, columns) in shapes.items():
            self.linear(f"{prefix}{names[part]}", rows, columns)
        for part in ("first", "second"):
            self.norm(f"{prefix}{names[part]}")


SEPARATE = dict.fromkeys(("q", "k", "v", "out"), (WIDTH, WIDTH))
PERCEPTRON = {"fc1": (4 * WIDTH, WIDTH), "fc2": (WIDTH, 4 * WIDTH)}
STACKED = {"qkv": (3 * WIDTH, WIDTH), "out": (WIDTH, WIDTH), **PERCEPTRON}


def dinov2_tensors() -> dict[str, np.ndarray]:
    """Return weights under the names of facebook/dinov2-base."""
    made = _Random(1)
    made.normal("embeddings.cls_token", 1, 1, WIDTH)
    made.normal("embeddings.mask_token", 1, WIDTH)
    made.normal("embeddings.position_embeddings", 1, 1 + DINO_GRID**2, WIDTH)
    made.normal("embeddings.patch_embeddings.projection.weight", WIDTH, 3, DINO_PATCH, DINO_PATCH, scale=1 / DINO_PATCH)
    made.normal("embeddings.patch_embeddings.projection.bias", WIDTH)
    names = {
        "q": "attention.attention.query",
        "k": "attention.attention.key",
        "v": "attention.attention.value",
        "out": "attention.output.dense",
        "fc1": "mlp.fc1",
        "fc2": "mlp.fc2",
        "first": "norm1",
        "second": "norm2",
    }
    for number in range(LAYERS):
        prefix = f"encoder.layer.{number}."
        made.layer(prefix, names, {**SEPARATE, **PERCEPTRON})
        for scale in (1, 2):
            made.normal(f"{prefix}layer_scale{scale}.lambda1", WIDTH, mean=1, scale=0.3)
    made.norm("layernorm")
    return made.tensors


def write_dinov2(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["Dinov2Model"],
        "model_type": "dinov2",
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-6,
        "image_size": DINO_PATCH * DINO_GRID,
        "patch_size": DINO_PATCH,
        "mlp_ratio": 4,
        "qkv_bias": True,
        "use_swiglu_ffn": False,
    }
    (folder / "config.json").write_text(json.dumps(config))
    save_file(dinov2_tensors(), folder / "model.safetensors", {"format": "pt"})
    return folder


def gemma_tokenizer() -> Tokenizer:
    """Return a tokenizer of the kind of SigLIP 2: byte pairs, spaces as letters, an end token, no start token."""
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    words = ["<pad>", "<eos>", "<bos>", "<unk>", "▁", *letters, "ca", "cat"]
    vocabulary = {word: number for number, word in enumerate(words)}
    merges = [("c", "a"), ("ca", "t")]
    result = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True))
    result.normalizer = normalizers.Replace(" ", "▁")
    result.pre_tokenizer = pre_tokenizers.Split(Regex(" "), "merged_with_previous")
    result.post_processor = processors.TemplateProcessing("$A <eos>", special_tokens=[("<eos>", vocabulary["<eos>"])])
    result.add_special_tokens(["<pad>", "<eos>", "<bos>", "<unk>"])
    return result


def siglip_tensors() -> dict[str, np.ndarray]:
    """Return weights under the names of google/siglip2-base-patch16-224."""
    made = _Random(2)
    patches = (224 // SIGLIP_PATCH) ** 2
    made.normal("vision_model.embeddings.patch_embedding.weight", WIDTH, 3, SIGLIP_PATCH, SIGLIP_PATCH, scale=0.02)
    made.normal("vision_model.embeddings.patch_embedding.bias", WIDTH)
    made.normal("vision_model.embeddings.position_embedding.weight", patches, WIDTH)
    made.normal("text_model.embeddings.token_embedding.weight", gemma_tokenizer().get_vocab_size(), WIDTH, scale=1)
    made.normal("text_model.embeddings.position_embedding.weight", SIGLIP_CONTEXT, WIDTH)
    names = {part: f"self_attn.{part}_proj" for part in ("q", "k", "v", "out")}
    names |= {"fc1": "mlp.fc1", "fc2": "mlp.fc2", "first": "layer_norm1", "second": "layer_norm2"}
    for tower in ("vision_model", "text_model"):
        for number in range(LAYERS):
            made.layer(f"{tower}.encoder.layers.{number}.", names, {**SEPARATE, **PERCEPTRON})
    head = "vision_model.head"
    made.normal(f"{head}.probe", 1, 1, WIDTH)
    made.normal(f"{head}.attention.in_proj_weight", 3 * WIDTH, WIDTH, scale=WIDTH**-0.5)
    made.normal(f"{head}.attention.in_proj_bias", 3 * WIDTH, scale=0.1)
    made.linear(f"{head}.attention.out_proj", WIDTH, WIDTH)
    made.norm(f"{head}.layernorm")
    for part, (rows, columns) in PERCEPTRON.items():
        made.linear(f"{head}.mlp.{part}", rows, columns)
    made.linear("text_model.head", WIDTH, WIDTH)
    for name in ("vision_model.post_layernorm", "text_model.final_layer_norm"):
        made.norm(name)
    made.normal("logit_scale", 1)
    made.normal("logit_bias", 1)
    return made.tensors


def write_siglip(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    shared = {
        "hidden_size": WIDTH,
        "intermediate_size": 4 * WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "hidden_act": "gelu_pytorch_tanh",
        "layer_norm_eps": 1e-6,
    }
    words = gemma_tokenizer().get_vocab_size()
    text = {"vocab_size": words, "max_position_embeddings": SIGLIP_CONTEXT, "projection_size": WIDTH}
    config = {
        "architectures": ["SiglipModel"],
        "model_type": "siglip",
        "vision_config": {**shared, "image_size": 224, "patch_size": SIGLIP_PATCH, "model_type": "siglip_vision_model"},
        "text_config": {**shared, **text, "model_type": "siglip_text_model"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    save_file(siglip_tensors(), folder / "model.safetensors", {"format": "pt"})
    gemma_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def mobileclip_tensors() -> dict[str, np.ndarray]:
    """Return weights under the names of timm/MobileCLIP2-B-OpenCLIP."""
    made = _Random(3)
    trunk = "visual.trunk"
    made.normal(f"{trunk}.cls_token", 1, 1, WIDTH)
    made.normal(f"{trunk}.pos_embed", 1, 196, WIDTH)
    stem = f"{trunk}.patch_embed.backbone"
    for number, (channels, kernel, before) in enumerate([(32, 4, 3), (32, 2, 32), (WIDTH, 2, 32)]):
        scale = (before * kernel**2) ** -0.5
        made.normal(f"{stem}.{number}.conv.weight", channels, before, kernel, kernel, scale=2 * scale)
        if channels == WIDTH:
            made.normal(f"{stem}.{number}.conv.bias", channels)
            continue
        made.norm(f"{stem}.{number}.bn", channels)
        made.normal(f"{stem}.{number}.bn.running_mean", channels)
        made.normal(f"{stem}.{number}.bn.running_var", channels, mean=2, scale=0.1)
        made.tensors[f"{stem}.{number}.bn.num_batches_tracked"] = np.array(7)
    names = {"qkv": "attn.qkv", "out": "attn.proj", "fc1": "mlp.fc1", "fc2": "mlp.fc2"}
    names |= {"first": "norm1", "second": "norm2"}
    for number in range(LAYERS):
        made.layer(f"{trunk}.blocks.{number}.", names, STACKED)
    made.norm(f"{trunk}.norm")
    made.linear(f"{trunk}.head", MOBILE_DIMENSION, WIDTH)
    text = small_clip.open_clip_tensors(small_clip.tensors())
    scale = text.pop("logit_scale")
    inner = {f"text.{name}": value for name, value in text.items() if not name.startswith("visual.")}
    return {**made.tensors, **inner, "logit_scale": scale}


def write_mobileclip(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    vision = {"timm_model_name": "vit_base_mci_224", "timm_pool": "token", "timm_proj": None, "image_size": 224}
    text = {
        "context_length": small_clip.CONTEXT,
        "vocab_size": small_clip.tokenizer().get_vocab_size(),
        "width": small_clip.WIDTH,
        "heads": small_clip.HEADS,
        "layers": small_clip.LAYERS,
        "no_causal_mask": False,
    }
    model = {"embed_dim": MOBILE_DIMENSION, "vision_cfg": vision, "text_cfg": text, "custom_text": True}
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": model, "preprocess_cfg": {}}))
    save_file(mobileclip_tensors(), folder / "open_clip_model.safetensors", {"format": "pt"})
    small_clip.tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def use_small_widths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the entries of the table have the width of the small models."""
    table = catalog._table()
    for entry in table["encoder"]:
        if entry["name"] in ("dinov2-b", "siglip2-b16"):
            entry["dimension"] = WIDTH
    monkeypatch.setattr(catalog, "_table", lambda: table)
