from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from hycal.encoders.rewrites import dequantise
from hycal.errors import HyCalError


def quantised(zero_point: int = 0) -> tuple[onnx.ModelProto, np.ndarray]:
    """A product quantised as ONNX Runtime's dynamic quantisation does it, and the weight that it stands for."""
    random = np.random.default_rng(0)
    weight = random.integers(-127, 128, (6, 4), dtype=np.int8)
    scale = random.uniform(0.01, 0.1, 4).astype(np.float32)
    zeros = np.full(4, zero_point, dtype=np.int8)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["xq", "xs", "xz"]),
        helper.make_node("Mul", ["xs", "scale"], ["scales"]),
        helper.make_node("MatMulInteger", ["xq", "weight", "xz", "zeros"], ["product"], name="the product"),
        helper.make_node("Cast", ["product"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["wide", "scales"], ["y"]),
        helper.make_node("Neg", ["y"], ["unused"]),
    ]
    stored = {"weight": weight, "scale": scale, "zeros": zeros}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in ("y", "unused")],
        [numpy_helper.from_array(value, name) for name, value in stored.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=7)
    return model, weight.astype(np.float32) * scale


def test_exact_product_with_the_stored_weight() -> None:
    model, weight = quantised()
    x = np.random.default_rng(1).standard_normal((5, 6)).astype(np.float32)
    x[:, 0] *= 100  # the outlier channel that ruins dynamic quantisation
    plain = dequantise(model, output="y")
    result = _run(plain, x)
    np.testing.assert_allclose(result, x @ weight, rtol=1e-5, atol=1e-5)
    assert np.abs(_run(model, x) - x @ weight).max() > 100 * np.abs(result - x @ weight).max()
    assert [value.name for value in plain.graph.output] == ["y"]
    assert {node.op_type for node in plain.graph.node} == {"Cast", "Mul", "MatMul"}


def test_the_model_passed_in_is_unchanged() -> None:
    model, _ = quantised()
    before = model.SerializeToString()
    dequantise(model, output="y")
    assert model.SerializeToString() == before


def test_unknown_output() -> None:
    with pytest.raises(HyCalError, match=r"outputs \['y', 'unused'\]; expected 'z'"):
        dequantise(quantised()[0], output="z")


def test_zero_point_is_refused() -> None:
    with pytest.raises(HyCalError, match="symmetric"):
        dequantise(quantised(zero_point=3)[0], output="y")


def test_other_pattern_is_refused() -> None:
    model, _ = quantised()
    model.graph.node[4].op_type = "Add"
    with pytest.raises(HyCalError, match=r"goes to .*Add.*; expected one Mul"):
        dequantise(model, output="y")


def _run(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["y"], {"x": x})[0]
