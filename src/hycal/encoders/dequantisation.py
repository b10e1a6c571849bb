"""Dequantisation of an ONNX graph: float32 products with the stored weights instead of dynamically quantised ones.

Dynamic quantisation rounds every activation tensor to 256 levels of its own range. In CLIP's residual stream a few
channels are tens of times larger than the others, so the others are rounded to zero. The weights are accurate: they are
quantised per channel. Each ::

    DynamicQuantizeLinear(x) -> MatMulInteger(x_q, W_q) -> Cast -> Mul(x_scale * w_scale)

becomes `MatMul(x, Cast(W_q) * w_scale)`. The int8 weights stay in the file, which keeps its size; ONNX Runtime
folds the product into a float32 weight when it loads the graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hycal.encoders.graph_outputs import keep_output
from hycal.errors import HyCalError

if TYPE_CHECKING:
    import onnx

_QUANTISED = {"DynamicQuantizeLinear", "MatMulInteger"}


def dequantise(model: onnx.ModelProto, *, output: str) -> onnx.ModelProto:
    """Return `model` with float32 matrix products and `output` as its only output.

    Parameters
    ----------
    model : onnx.ModelProto
        Unchanged.
    output : str
        Name of the graph output to keep.

    Raises
    ------
    HyCalError
        If the graph is not built of the pattern above.
    """
    import onnx

    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = _Graph(result.graph)
    for product in [node for node in result.graph.node if node.op_type == "MatMulInteger"]:
        graph.replace(product)
    result = keep_output(result, output=output)
    left = sorted({node.op_type for node in result.graph.node} & _QUANTISED)
    if left:
        raise HyCalError(f"The graph still holds {left} after the rewrite; expected plain float32 products.")
    return result


class _Graph:
    """A graph with the node that makes each value, and the nodes that use it."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.initializers = {tensor.name: tensor for tensor in graph.initializer}
        self.makers = {name: node for node in graph.node for name in node.output}
        self.users: dict[str, list[onnx.NodeProto]] = {}
        for node in graph.node:
            for name in node.input:
                self.users.setdefault(name, []).append(node)

    def replace(self, product: onnx.NodeProto) -> None:
        """Replace the last Mul after `product` by a MatMul with the dequantised weight."""
        from onnx import TensorProto, helper

        quantise = self._maker(product, product.input[0], "DynamicQuantizeLinear")
        weight = self._weight(product)
        cast = self._only_user(product, "Cast")
        scaled = self._only_user(cast, "Mul")
        scales = self._maker(scaled, next(name for name in scaled.input if name != cast.output[0]), "Mul")
        scale = next((name for name in scales.input if name in self.initializers), None)
        if scale is None:
            raise HyCalError(f"No weight scale is stored for {product.name!r}; expected a constant one.")
        wide, dense = f"{weight}_float", f"{weight}_dequantised"
        if dense not in self.makers:
            nodes = [
                helper.make_node("Cast", [weight], [wide], name=wide, to=TensorProto.FLOAT),
                helper.make_node("Mul", [wide, scale], [dense], name=dense),
            ]
            for at, node in enumerate(nodes):
                self.graph.node.insert(at, node)
                self.makers[node.output[0]] = node
        scaled.op_type = "MatMul"
        del scaled.input[:]
        scaled.input.extend([quantise.input[0], dense])

    def _weight(self, product: onnx.NodeProto) -> str:
        from onnx import numpy_helper

        weight: str = product.input[1]
        if weight not in self.initializers:
            raise HyCalError(f"The weight {weight!r} of {product.name!r} is computed; expected a stored tensor.")
        offset = product.input[3] if len(product.input) > 3 else ""
        if offset and np.any(numpy_helper.to_array(self.initializers[offset])):
            raise HyCalError(f"The weight {weight!r} has a zero point; expected symmetric int8 weights.")
        return weight

    def _maker(self, node: onnx.NodeProto, name: str, op_type: str) -> onnx.NodeProto:
        maker: onnx.NodeProto | None = self.makers.get(name)
        if maker is None or maker.op_type != op_type:
            found = "a stored tensor" if maker is None else maker.op_type
            raise HyCalError(f"The input {name!r} of {node.name!r} comes from {found}; expected {op_type}.")
        return maker

    def _only_user(self, node: onnx.NodeProto, op_type: str) -> onnx.NodeProto:
        users = self.users.get(node.output[0], [])
        if len(users) != 1 or users[0].op_type != op_type:
            found = [user.op_type for user in users]
            raise HyCalError(f"The result of {node.name!r} goes to {found}; expected one {op_type}.")
        return users[0]
