"""Rewrites of published ONNX graphs, which may end in something else than an embedding, or round activations to 8 bits.

Each returns a copy, without the nodes and tensors that are no longer needed. `keep_output`, `class_token` and
`patch_mean` choose the value that is the embedding: one of the outputs, or a token of a vision transformer.

`dequantise` computes float32 products with the stored weights instead of dynamically quantised ones. Dynamic
quantisation rounds every activation tensor to 256 levels of its own range. In the residual stream of CLIP a few
channels are tens of times larger than the others, so the others are rounded to zero. The weights are accurate: they are
quantised per channel. Each ::

    DynamicQuantizeLinear(x) -> MatMulInteger(x_q, W_q) -> Cast -> Mul(x_scale * w_scale)

becomes `MatMul(x, Cast(W_q) * w_scale)`. The int8 weights stay in the file, which keeps its size; ONNX Runtime
folds the product into a float32 weight when it loads the graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hycal.encoders.onnx_backend import IMAGES
from hycal.errors import HyCalError

if TYPE_CHECKING:
    import onnx


_QUANTISED = {"DynamicQuantizeLinear", "MatMulInteger"}


def keep_output(model: onnx.ModelProto, *, output: str) -> onnx.ModelProto:
    """Return a copy of `model` with the graph output `output` as its only one."""
    result = _copy(model)
    keep = [value for value in result.graph.output if value.name == output]
    if not keep:
        raise HyCalError(
            f"The graph has the outputs {[value.name for value in model.graph.output]}; expected {output!r} among them."
        )
    return _ending_in(result, keep[0])


def class_token(model: onnx.ModelProto, *, output: str) -> onnx.ModelProto:
    """Return a copy of `model` whose output is the first token of the value `output`, of shape (n, tokens, d)."""
    from onnx import helper, numpy_helper

    result = _copy(model, value=output)
    first = f"{IMAGES}_first"
    result.graph.initializer.append(numpy_helper.from_array(np.array(0, dtype=np.int64), first))
    result.graph.node.append(helper.make_node("Gather", [output, first], [IMAGES], name=IMAGES, axis=1))
    return _ending_in(result, _embedding())


def patch_mean(model: onnx.ModelProto, *, output: str) -> onnx.ModelProto:
    """Return a copy of `model` whose output is the mean of all tokens but the first of the value `output`."""
    from onnx import helper, numpy_helper

    result = _copy(model, value=output)
    names = {f"{IMAGES}_starts": 1, f"{IMAGES}_ends": np.iinfo(np.int64).max, f"{IMAGES}_axes": 1}
    for name, number in names.items():
        result.graph.initializer.append(numpy_helper.from_array(np.array([number], dtype=np.int64), name))
    patches = f"{IMAGES}_patches"
    result.graph.node.extend(
        [
            helper.make_node("Slice", [output, *names], [patches], name=patches),
            helper.make_node("ReduceMean", [patches], [IMAGES], name=IMAGES, axes=[1], keepdims=0),
        ]
    )
    return _ending_in(result, _embedding())


def _copy(model: onnx.ModelProto, *, value: str | None = None) -> onnx.ModelProto:
    """Return a copy of `model`, in which a node must make `value`."""
    import onnx

    if value is not None and not any(value in node.output for node in model.graph.node):
        raise HyCalError(f"No node of the graph makes {value!r}. The graph is that of another model.")
    result = onnx.ModelProto()
    result.CopyFrom(model)
    return result


def _embedding() -> onnx.ValueInfoProto:
    from onnx import TensorProto, helper

    return helper.make_tensor_value_info(IMAGES, TensorProto.FLOAT, ["batch", "dimension"])


def _ending_in(model: onnx.ModelProto, value: onnx.ValueInfoProto) -> onnx.ModelProto:
    """Make `value` the only output of `model`, and remove the nodes and tensors that it does not need."""
    import onnx

    graph = model.graph
    del graph.output[:]
    graph.output.append(value)
    needed = {value.name}
    kept = []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
    del graph.node[:]
    graph.node.extend(reversed(kept))
    stored = [tensor for tensor in graph.initializer if tensor.name in needed]
    del graph.initializer[:]
    graph.initializer.extend(stored)
    del graph.value_info[:]
    onnx.checker.check_model(model)
    return model


def dequantise(model: onnx.ModelProto, *, output: str) -> onnx.ModelProto:
    """Return a copy of `model` with float32 matrix products and the graph output `output` as its only one.

    A graph that is not built of the pattern above is refused.
    """
    result = _copy(model)
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
