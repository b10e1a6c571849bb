"""The towers of a checkpoint as ONNX graphs, so that published weights run without torch.

All are pre-norm transformers. CLIP (Radford et al., 2021) and DINOv2 (Oquab et al., 2023) read the image embedding at
the class token, SigLIP (Zhai et al., 2023) by attention from a learned probe. CLIP reads the text embedding at the
first end token under a causal mask, SigLIP at the last token. The tensors of the checkpoint say which parts there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hycal.encoders.checkpoint import Checkpoint, Tensors, TextShape, TowerShape, count_layers
from hycal.encoders.onnx_graph import GraphBuilder
from hycal.errors import HyCalError
from hycal.validation import Floats


class _Complete(dict[str, Floats]):
    """Tensors by name, of which none that a graph needs may be missing."""

    def __missing__(self, name: str) -> Floats:
        raise HyCalError(
            f"The checkpoint has no tensor {name!r}, which its configuration asks for. The weights are those of "
            "another model, or incomplete; get the files again."
        )


class _Builder(GraphBuilder):
    """A graph builder with the parts of a transformer."""

    def __init__(self, tensors: Tensors) -> None:
        super().__init__("Building the graph of a checkpoint")
        self.tensors: Mapping[str, Floats] = _Complete(tensors)

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
        if kind == "gelu_pytorch_tanh":
            cube = self.node("Mul", self.node("Mul", x, x), x)
            inner = self.node("Add", x, self.node("Mul", cube, self.number(0.044715)))
            bend = self.node("Tanh", self.node("Mul", inner, self.number((2 / np.pi) ** 0.5)))
            return self.node("Mul", self.node("Mul", x, self.number(0.5)), self.node("Add", bend, self.number(1.0)))
        error = self.node("Erf", self.node("Mul", x, self.number(0.5**0.5)))
        return self.node("Mul", self.node("Mul", x, self.number(0.5)), self.node("Add", error, self.number(1.0)))

    def attention(self, x: str, name: str, heads: int, *, mask: str | None = None, probe: str | None = None) -> str:
        """Add attention to the tokens `x`, of those tokens themselves or of `probe`."""
        width = self.tensors[f"{name}.q_proj.weight"].shape[0]
        split = self.ints(0, 0, heads, width // heads)

        def head(tokens: str, letter: str, order: Sequence[int]) -> str:
            rows = self.node("Reshape", self.linear(tokens, f"{name}.{letter}_proj"), split)
            return self.node("Transpose", rows, perm=order)

        query = self.node("Mul", head(probe or x, "q", (0, 2, 1, 3)), self.number((width // heads) ** -0.5))
        scores = self.node("MatMul", query, head(x, "k", (0, 2, 3, 1)))
        if mask is not None:
            scores = self.node("Add", scores, mask)
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), head(x, "v", (0, 2, 1, 3)))
        joined = self.node("Reshape", self.node("Transpose", mixed, perm=(0, 2, 1, 3)), self.ints(0, 0, width))
        return self.linear(joined, f"{name}.out_proj")

    def transformer(self, x: str, name: str, shape: TowerShape, mask: str | None) -> str:
        for number in range(shape.layers):
            layer = f"{name}.encoder.layers.{number}"
            normed = self.norm(x, f"{layer}.layer_norm1", shape.epsilon)
            x = self.node("Add", x, self.attention(normed, f"{layer}.self_attn", shape.heads, mask=mask))
            x = self.perceptron(x, f"{layer}.layer_norm2", f"{layer}.mlp", shape)
        return x

    def perceptron(self, x: str, norm: str, name: str, shape: TowerShape) -> str:
        """Add the second half of a layer to `x`."""
        hidden = self.linear(self.norm(x, norm, shape.epsilon), f"{name}.fc1")
        return self.node("Add", x, self.linear(self.activation(hidden, shape.activation), f"{name}.fc2"))

    def convolution(self, x: str, name: str) -> str:
        """Add a convolution whose windows do not overlap."""
        side = self.tensors[f"{name}.weight"].shape[-2:]
        bias = [self.weight(f"{name}.bias")] if f"{name}.bias" in self.tensors else []
        return self.node("Conv", x, self.weight(f"{name}.weight"), *bias, kernel_shape=side, strides=side)

    def first(self, x: str) -> str:
        """Take the first token."""
        return self.node("Gather", x, self.constant(np.array(0, dtype=np.int64)), axis=1)

    def tower(self, *, given: Any, result: str, output: str) -> bytes:
        kind = self.onnx.TensorProto.FLOAT
        return self.model("tower", given=given, outputs={output: (result, kind, ["batch", "dimension"])})


def image_graph(checkpoint: Checkpoint) -> bytes:
    """Return the serialised image tower: pixel_values (n, 3, size, size) to image_embeds (n, d)."""
    build = _Builder(checkpoint.tensors)
    shape = checkpoint.image
    x = _image_tokens(build, shape)
    if "vision_model.pre_layrnorm.weight" in build.tensors:
        x = build.norm(x, "vision_model.pre_layrnorm", shape.epsilon)
    x = build.transformer(x, "vision_model", shape, None)
    if "vision_model.head.probe" in build.tensors:
        x = build.norm(x, "vision_model.post_layernorm", shape.epsilon)
        probe = build.weight("vision_model.head.probe")
        x = build.attention(x, "vision_model.head.attention", shape.heads, probe=probe)
        x = build.first(build.perceptron(x, "vision_model.head.layernorm", "vision_model.head.mlp", shape))
    else:
        x = build.norm(build.first(x), "vision_model.post_layernorm", shape.epsilon)
    if "visual_projection.weight" in build.tensors:
        x = build.linear(x, "visual_projection")
    side = checkpoint.image_size
    given = build.onnx.helper.make_tensor_value_info(
        "pixel_values", build.onnx.TensorProto.FLOAT, ["batch", 3, side, side]
    )
    return build.tower(given=given, result=x, output="image_embeds")


def _image_tokens(build: _Builder, shape: TowerShape) -> str:
    """Add the patches of an image with their positions, after the class token if there is one."""
    embeddings = "vision_model.embeddings"
    grid = "pixel_values"
    for number in range(count_layers(build.tensors, f"{embeddings}.stem.")):
        grid = build.activation(build.convolution(grid, f"{embeddings}.stem.{number}"), shape.activation)
    grid = build.convolution(grid, f"{embeddings}.patch_embedding")
    width = build.tensors[f"{embeddings}.patch_embedding.weight"].shape[0]
    x = build.node("Transpose", build.node("Reshape", grid, build.ints(0, width, -1)), perm=(0, 2, 1))
    if f"{embeddings}.class_embedding" in build.tensors:
        token = build.constant(build.tensors[f"{embeddings}.class_embedding"].reshape(1, 1, width))
        count = build.node("Slice", build.node("Shape", "pixel_values"), build.ints(0), build.ints(1))
        tokens = build.node("Expand", token, build.node("Concat", count, build.ints(1, width), axis=0))
        x = build.node("Concat", tokens, x, axis=1)
    return build.node("Add", x, build.weight(f"{embeddings}.position_embedding.weight"))


def text_graph(checkpoint: Checkpoint, shape: TextShape) -> bytes:
    """Return the serialised text tower: input_ids (n, context) to text_embeds (n, d)."""
    build = _Builder(checkpoint.tensors)
    embeddings = "text_model.embeddings"
    context = shape.context
    x = build.node("Gather", build.weight(f"{embeddings}.token_embedding.weight"), "input_ids", axis=0)
    x = build.node("Add", x, build.weight(f"{embeddings}.position_embedding.weight"))
    causal = np.triu(np.full((context, context), -1e9, dtype=np.float32), 1)
    mask = build.constant(causal) if shape.attention == "causal" else None
    x = build.transformer(x, "text_model", shape.tower, mask)
    x = build.norm(x, "text_model.final_layer_norm", shape.tower.epsilon)
    if shape.pooling == "end":
        # The end token has the largest id, also pads the row, and ArgMax takes the first of equal ids: the end of the
        # text.
        end = build.node("ArgMax", "input_ids", axis=1, keepdims=1, select_last_index=0)
        x = build.node("GatherND", x, end, batch_dims=1)
    else:
        x = build.node("Gather", x, build.constant(np.array(context - 1, dtype=np.int64)), axis=1)
    x = build.linear(x, "text_projection")
    given = build.onnx.helper.make_tensor_value_info("input_ids", build.onnx.TensorProto.INT64, ["batch", context])
    return build.tower(given=given, result=x, output="text_embeds")
