"""A small CLIP in the file formats of the real ones: random weights, real configuration and tokenizer files."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

WIDTH, LAYERS, HEADS, PATCH, SIZE, CONTEXT, DIMENSION = 128, 2, 2, 56, 224, 77, 512
START, END = "<|startoftext|>", "<|endoftext|>"
MERGES = [("c", "a"), ("ca", "t</w>"), ("p", "h"), ("ph", "o"), ("pho", "t"), ("phot", "o</w>")]


def tokenizer() -> Tokenizer:
    """CLIP's tokenizer with six merges instead of 48,894."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [*letters, *(f"{letter}</w>" for letter in letters), *("".join(pair) for pair in MERGES), START, END]
    vocabulary = {word: number for number, word in enumerate(words)}
    result = Tokenizer(models.BPE(vocabulary, MERGES, unk_token=END, end_of_word_suffix="</w>"))
    result.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    pattern = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
    result.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "removed", invert=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    ends = (END, vocabulary[END]), (START, vocabulary[START])
    result.post_processor = processors.RobertaProcessing(*ends, trim_offsets=False, add_prefix_space=False)
    result.decoder = decoders.ByteLevel()
    result.add_special_tokens([START, END])
    return result


@functools.cache
def tensors(seed: int = 0) -> dict[str, np.ndarray]:
    """Random weights under transformers' names, scaled so that activations stay of order one."""
    random = np.random.default_rng(seed)

    def normal(*shape: int, scale: float) -> np.ndarray:
        return (random.standard_normal(shape) * scale).astype(np.float32)

    words = tokenizer().get_vocab_size()
    patches = (SIZE // PATCH) ** 2 + 1
    result = {
        "vision_model.embeddings.class_embedding": normal(WIDTH, scale=1),
        "vision_model.embeddings.patch_embedding.weight": normal(WIDTH, 3, PATCH, PATCH, scale=1 / PATCH),
        "vision_model.embeddings.position_embedding.weight": normal(patches, WIDTH, scale=0.5),
        "text_model.embeddings.token_embedding.weight": normal(words, WIDTH, scale=1),
        "text_model.embeddings.position_embedding.weight": normal(CONTEXT, WIDTH, scale=0.5),
        "visual_projection.weight": normal(DIMENSION, WIDTH, scale=WIDTH**-0.5),
        "text_projection.weight": normal(DIMENSION, WIDTH, scale=WIDTH**-0.5),
        "logit_scale": np.array(2.6592, dtype=np.float32),
    }
    norms = ["vision_model.pre_layrnorm", "vision_model.post_layernorm", "text_model.final_layer_norm"]
    for tower in ("vision_model", "text_model"):
        for number in range(LAYERS):
            layer = f"{tower}.encoder.layers.{number}"
            norms += [f"{layer}.layer_norm1", f"{layer}.layer_norm2"]
            shapes = {f"self_attn.{part}_proj": (WIDTH, WIDTH) for part in ("q", "k", "v", "out")}
            shapes |= {"mlp.fc1": (4 * WIDTH, WIDTH), "mlp.fc2": (WIDTH, 4 * WIDTH)}
            for name, (rows, columns) in shapes.items():
                result[f"{layer}.{name}.weight"] = normal(rows, columns, scale=2 * columns**-0.5)
                result[f"{layer}.{name}.bias"] = normal(rows, scale=0.1)
    for name in norms:
        result[f"{name}.weight"] = 1 + normal(WIDTH, scale=0.1)
        result[f"{name}.bias"] = normal(WIDTH, scale=0.1)
    return result


def write_transformers(folder: Path, *, activation: str) -> Path:
    """Write the folder that `CLIPModel.save_pretrained` would."""
    folder.mkdir(parents=True, exist_ok=True)
    end = tokenizer().token_to_id(END)
    shared = {
        "hidden_size": WIDTH,
        "intermediate_size": 4 * WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "hidden_act": activation,
        "layer_norm_eps": 1e-5,
        "projection_dim": DIMENSION,
    }
    text = {"vocab_size": end + 1, "max_position_embeddings": CONTEXT, "eos_token_id": end, "bos_token_id": end - 1}
    config = {
        "architectures": ["CLIPModel"],
        "model_type": "clip",
        "projection_dim": DIMENSION,
        "vision_config": {**shared, "image_size": SIZE, "patch_size": PATCH, "model_type": "clip_vision_model"},
        "text_config": {**shared, **text, "pad_token_id": end, "model_type": "clip_text_model"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors(), folder / "model.safetensors", {"format": "pt"})
    tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def write_open_clip(folder: Path, *, activation: str) -> Path:
    """Write the folder that open_clip's push to the hub would."""
    folder.mkdir(parents=True, exist_ok=True)
    vision = {"image_size": SIZE, "layers": LAYERS, "width": WIDTH, "patch_size": PATCH}
    text = {
        "context_length": CONTEXT,
        "vocab_size": tokenizer().get_vocab_size(),
        "width": WIDTH,
        "heads": HEADS,
        "layers": LAYERS,
    }
    model = {"embed_dim": DIMENSION, "vision_cfg": vision, "text_cfg": text}
    if activation == "quick_gelu":
        model["quick_gelu"] = True
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": model, "preprocess_cfg": {}}))
    save_file(open_clip_tensors(tensors()), folder / "open_clip_model.safetensors", {"format": "pt"})
    tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def open_clip_tensors(source: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    result = {
        "visual.class_embedding": source["vision_model.embeddings.class_embedding"],
        "visual.conv1.weight": source["vision_model.embeddings.patch_embedding.weight"],
        "visual.positional_embedding": source["vision_model.embeddings.position_embedding.weight"],
        "visual.proj": source["visual_projection.weight"].T,
        "text_projection": source["text_projection.weight"].T,
        "token_embedding.weight": source["text_model.embeddings.token_embedding.weight"],
        "positional_embedding": source["text_model.embeddings.position_embedding.weight"],
        "logit_scale": source["logit_scale"],
    }
    for leaf in ("weight", "bias"):
        result[f"visual.ln_pre.{leaf}"] = source[f"vision_model.pre_layrnorm.{leaf}"]
        result[f"visual.ln_post.{leaf}"] = source[f"vision_model.post_layernorm.{leaf}"]
        result[f"ln_final.{leaf}"] = source[f"text_model.final_layer_norm.{leaf}"]
        for ours, theirs in (("vision_model", "visual.transformer"), ("text_model", "transformer")):
            for number in range(LAYERS):
                layer, block = f"{ours}.encoder.layers.{number}", f"{theirs}.resblocks.{number}"
                stacked = [source[f"{layer}.self_attn.{letter}_proj.{leaf}"] for letter in "qkv"]
                result[f"{block}.attn.in_proj_{leaf}"] = np.concatenate(stacked)
                result[f"{block}.attn.out_proj.{leaf}"] = source[f"{layer}.self_attn.out_proj.{leaf}"]
                result[f"{block}.ln_1.{leaf}"] = source[f"{layer}.layer_norm1.{leaf}"]
                result[f"{block}.ln_2.{leaf}"] = source[f"{layer}.layer_norm2.{leaf}"]
                result[f"{block}.mlp.c_fc.{leaf}"] = source[f"{layer}.mlp.fc1.{leaf}"]
                result[f"{block}.mlp.c_proj.{leaf}"] = source[f"{layer}.mlp.fc2.{leaf}"]
    return {name: np.ascontiguousarray(value) for name, value in result.items()}
