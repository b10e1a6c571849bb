"""Graphs that end at a token."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from hycal.encoders.rewrites import class_token, keep_output, patch_mean
from hycal.errors import HyCalError


def grid_model() -> onnx.ModelProto:
    """A graph that makes tokens (n, 5, 3) and ends in something else."""
    nodes = [
        helper.make_node("Add", ["x", "shift"], ["tokens"]),
        helper.make_node("ReduceMax", ["tokens"], ["y"], axes=[1, 2], keepdims=0),
        helper.make_node("Mul", ["y", "unused"], ["z"]),
    ]
    stored = {"shift": np.arange(3, dtype=np.float32), "unused": np.ones(1, np.float32)}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 5, 3])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in ("y", "z")],
        [numpy_helper.from_array(value, name) for name, value in stored.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=7)


X = np.random.default_rng(0).standard_normal((4, 5, 3)).astype(np.float32)
TOKENS = X + np.arange(3, dtype=np.float32)


@pytest.mark.parametrize(("cut", "expected"), [(class_token, TOKENS[:, 0]), (patch_mean, TOKENS[:, 1:].mean(axis=1))])
def test_the_embedding_is_read_at_the_tokens(cut, expected) -> None:
    model = grid_model()
    before = model.SerializeToString()
    result = cut(model, output="tokens")
    assert model.SerializeToString() == before
    assert [value.name for value in result.graph.output] == ["image_embeds"]
    assert "unused" not in {tensor.name for tensor in result.graph.initializer}
    np.testing.assert_allclose(run(result), expected, atol=1e-6)


def test_one_output_is_kept() -> None:
    result = keep_output(grid_model(), output="y")
    assert [node.op_type for node in result.graph.node] == ["Add", "ReduceMax"]
    np.testing.assert_allclose(run(result), TOKENS.max(axis=(1, 2)), atol=1e-6)


@pytest.mark.parametrize("cut", [class_token, patch_mean])
def test_a_graph_of_another_model_is_refused(cut) -> None:
    with pytest.raises(HyCalError, match="No node of the graph makes '/norm'"):
        cut(grid_model(), output="/norm")


def run(model: onnx.ModelProto) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": X})[0]
