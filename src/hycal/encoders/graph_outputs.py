"""Which value of an ONNX graph is the embedding: one of its outputs, or a token of a vision transformer.

A published graph may end in something else than the embedding of an image, for example in a grid of patch features. The
functions here return a copy that ends where it should, without the nodes and tensors that are no longer needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hycal.errors import HyCalError

if TYPE_CHECKING:
    import onnx

EMBEDDING = "image_embeds"


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
    import numpy as np
    from onnx import helper, numpy_helper

    result = _copy(model, value=output)
    first = f"{EMBEDDING}_first"
    result.graph.initializer.append(numpy_helper.from_array(np.array(0, dtype=np.int64), first))
    result.graph.node.append(helper.make_node("Gather", [output, first], [EMBEDDING], name=EMBEDDING, axis=1))
    return _ending_in(result, _embedding())


def patch_mean(model: onnx.ModelProto, *, output: str) -> onnx.ModelProto:
    """Return a copy of `model` whose output is the mean of all tokens but the first of the value `output`."""
    import numpy as np
    from onnx import helper, numpy_helper

    result = _copy(model, value=output)
    names = {f"{EMBEDDING}_starts": 1, f"{EMBEDDING}_ends": np.iinfo(np.int64).max, f"{EMBEDDING}_axes": 1}
    for name, number in names.items():
        result.graph.initializer.append(numpy_helper.from_array(np.array([number], dtype=np.int64), name))
    patches = f"{EMBEDDING}_patches"
    result.graph.node.extend(
        [
            helper.make_node("Slice", [output, *names], [patches], name=patches),
            helper.make_node("ReduceMean", [patches], [EMBEDDING], name=EMBEDDING, axes=[1], keepdims=0),
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

    return helper.make_tensor_value_info(EMBEDDING, TensorProto.FLOAT, ["batch", "dimension"])


def _ending_in(model: onnx.ModelProto, value: onnx.ValueInfoProto) -> onnx.ModelProto:
    """Make `value` the only output of `model`, and remove the nodes and tensors that it does not need."""
    import onnx

    graph = model.graph
    outputs = [value]
    del graph.output[:]
    graph.output.extend(outputs)
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
