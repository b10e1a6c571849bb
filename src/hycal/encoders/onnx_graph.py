"""A builder of ONNX graphs, node by node; the encoders and the export use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.errors import load_extra

PRODUCER = "hycal"
OPSET = 17
_IR_VERSION = 8


class GraphBuilder:
    """Collects nodes and constants; each method that adds one returns its name.

    `why` says what needs the onnx package; it begins the message where the package is missing.
    """

    def __init__(self, why: str) -> None:
        self.onnx: Any = load_extra("onnx", extra="clip", why=why)
        self.nodes: list[Any] = []
        self.stored: dict[str, Any] = {}

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node."""
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, value: npt.NDArray[Any], name: str | None = None) -> str:
        """Store an array, once for each name."""
        key = name or f"constant_{len(self.stored)}"
        if key not in self.stored:
            self.stored[key] = self.onnx.numpy_helper.from_array(value, key)
        return key

    def ints(self, *values: int) -> str:
        """Store an array of integers."""
        return self.constant(np.array(values, dtype=np.int64))

    def number(self, value: float) -> str:
        """Store a float."""
        return self.constant(np.array(value, dtype=np.float32))

    def affine(self, rows: str, weights: npt.NDArray[Any], bias: npt.NDArray[Any]) -> str:
        """Add rows times the transpose of (m, d) `weights`, plus `bias`, in float32."""
        product = self.node("MatMul", rows, self.constant(np.ascontiguousarray(weights.T, np.float32)))
        return self.node("Add", product, self.constant(bias.astype(np.float32)))

    def model(
        self,
        name: str,
        *,
        given: Any,
        outputs: Mapping[str, tuple[str, Any, Sequence[int | str]]],
        properties: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return the serialised graph.

        `given` describes the input. `outputs` has for each output the name of its node, its element type and its shape;
        `properties` are metadata of the file.
        """
        helper = self.onnx.helper
        values = []
        for output, (result, kind, shape) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [result], [output], name=output))
            values.append(helper.make_tensor_value_info(output, kind, list(shape)))
        graph = helper.make_graph(self.nodes, name, [given], values, list(self.stored.values()))
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=_IR_VERSION, producer_name=PRODUCER)
        helper.set_model_props(model, dict(properties or {}))
        return bytes(model.SerializeToString())
