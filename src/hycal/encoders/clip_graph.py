"""The towers of a CLIP checkpoint as ONNX graphs, so that published weights run without torch.

Radford et al., Learning Transferable Visual Models From Natural Language Supervision, 2021: pre-norm transformers;
the image embedding is read at the class token, the text embedding at the first end token under a causal mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hycal.encoders.checkpoint import Checkpoint, Tensors, TowerShape
from hycal.encoders.onnx_graph import GraphBuilder


class _Builder(GraphBuilder):
    """A graph builder with the parts of a transformer."""

    def __init__(self, tensors: Tensors) -> None:
        super().__init__("Building a CLIP graph")
        self.tensors = tensors

    def weight(self, name: str) -> str:
        return self.constant(self.tensors[name], name)

    def linear(self, x: str, name: str) -> str:
        product = self.node("MatMul", x, self.constant(self.tensors[f"{name}.weight"].T, f"{name}.weight.T"))
        if f"{name}.bias" not in self.tensors:
            return product
        return self.node("Add", product, self.weight(f"{name}.bias"))

    def norm(self, x: str, name: str, epsilon: float) -> str:
        weights = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.node("LayerNormalization", x, *weights, axis=-1, epsilon=epsilon)

    def activation(self, x: str, kind: str) -> str:
        if kind == "quick_gelu":
            gate = self.node("Sigmoid", self.node("Mul", x, self.number(1.702)))
            return self.node("Mul", x, gate)
        error = self.node("Erf", self.node("Mul", x, self.number(0.5**0.5)))
        return self.node("Mul", self.node("Mul", x, self.number(0.5)), self.node("Add", error, self.number(1.0)))

    def attention(self, x: str, name: str, heads: int, mask: str | None) -> str:
        width = self.tensors[f"{name}.q_proj.weight"].shape[0]
        split = self.ints(0, 0, heads, width // heads)

        def head(letter: str, order: Sequence[int]) -> str:
            rows = self.node("Reshape", self.linear(x, f"{name}.{letter}_proj"), split)
            return self.node("Transpose", rows, perm=order)

        query = self.node("Mul", head("q", (0, 2, 1, 3)), self.number((width // heads) ** -0.5))
        scores = self.node("MatMul", query, head("k", (0, 2, 3, 1)))
        if mask is not None:
            scores = self.node("Add", scores, mask)
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), head("v", (0, 2, 1, 3)))
        joined = self.node("Reshape", self.node("Transpose", mixed, perm=(0, 2, 1, 3)), self.ints(0, 0, width))
        return self.linear(joined, f"{name}.out_proj")

    def transformer(self, x: str, name: str, shape: TowerShape, mask: str | None) -> str:
        for number in range(shape.layers):
            layer = f"{name}.encoder.layers.{number}"
            normed = self.norm(x, f"{layer}.layer_norm1", shape.epsilon)
            x = self.node("Add", x, self.attention(normed, f"{layer}.self_attn", shape.heads, mask))
            normed = self.norm(x, f"{layer}.layer_norm2", shape.epsilon)
            hidden = self.activation(self.linear(normed, f"{layer}.mlp.fc1"), shape.activation)
            x = self.node("Add", x, self.linear(hidden, f"{layer}.mlp.fc2"))
        return x

    def tower(self, *, given: Any, result: str, output: str, width: int) -> bytes:
        kind = self.onnx.TensorProto.FLOAT
        return self.model("clip", given=given, outputs={output: (result, kind, ["batch", width])})


def image_graph(checkpoint: Checkpoint) -> bytes:
    """Return the serialised image tower: pixel_values (n, 3, size, size) to image_embeds (n, d)."""
    build = _Builder(checkpoint.tensors)
    embeddings = "vision_model.embeddings"
    width = checkpoint.tensors[f"{embeddings}.class_embedding"].shape[-1]
    patch = (checkpoint.patch, checkpoint.patch)
    kernel = build.weight(f"{embeddings}.patch_embedding.weight")
    grid = build.node("Conv", "pixel_values", kernel, kernel_shape=patch, strides=patch)
    patches = build.node("Transpose", build.node("Reshape", grid, build.ints(0, width, -1)), perm=(0, 2, 1))
    token = build.constant(checkpoint.tensors[f"{embeddings}.class_embedding"].reshape(1, 1, width))
    count = build.node("Slice", build.node("Shape", "pixel_values"), build.ints(0), build.ints(1))
    tokens = build.node("Expand", token, build.node("Concat", count, build.ints(1, width), axis=0))
    x = build.node("Concat", tokens, patches, axis=1)
    x = build.node("Add", x, build.weight(f"{embeddings}.position_embedding.weight"))
    x = build.norm(x, "vision_model.pre_layrnorm", checkpoint.image.epsilon)
    x = build.transformer(x, "vision_model", checkpoint.image, None)
    first = build.node("Gather", x, build.constant(np.array(0, dtype=np.int64)), axis=1)
    x = build.linear(build.norm(first, "vision_model.post_layernorm", checkpoint.image.epsilon), "visual_projection")
    side = checkpoint.image_size
    kind = build.onnx.TensorProto.FLOAT
    given = build.onnx.helper.make_tensor_value_info("pixel_values", kind, ["batch", 3, side, side])
    return build.tower(given=given, result=x, output="image_embeds", width=_width(checkpoint, "visual_projection"))


def text_graph(checkpoint: Checkpoint) -> bytes:
    """Return the serialised text tower: input_ids (n, context) to text_embeds (n, d)."""
    build = _Builder(checkpoint.tensors)
    embeddings = "text_model.embeddings"
    context = checkpoint.context
    x = build.node("Gather", build.weight(f"{embeddings}.token_embedding.weight"), "input_ids", axis=0)
    x = build.node("Add", x, build.weight(f"{embeddings}.position_embedding.weight"))
    mask = np.triu(np.full((context, context), -1e9, dtype=np.float32), 1)
    x = build.transformer(x, "text_model", checkpoint.text, build.constant(mask))
    x = build.norm(x, "text_model.final_layer_norm", checkpoint.text.epsilon)
    # The end token has the largest id, also pads the row, and ArgMax takes the first of equal ids: the end of the text.
    end = build.node("ArgMax", "input_ids", axis=1, keepdims=1, select_last_index=0)
    at_end = build.node("GatherND", x, end, batch_dims=1)
    x = build.linear(at_end, "text_projection")
    given = build.onnx.helper.make_tensor_value_info("input_ids", build.onnx.TensorProto.INT64, ["batch", context])
    return build.tower(given=given, result=x, output="text_embeds", width=_width(checkpoint, "text_projection"))


def _width(checkpoint: Checkpoint, name: str) -> int:
    return int(checkpoint.tensors[f"{name}.weight"].shape[0])
