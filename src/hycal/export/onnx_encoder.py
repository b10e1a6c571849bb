"""An image encoder in front of an exported head: pixels in, embeddings out, in the same ONNX graph.

The input `pixels` is uint8, (n, side, side, 3), RGB from 0 to 255: an image whose shorter side was resized, and from
whose centre a square was cut, as `hycal.encoders.preprocessing` says. Scaling and normalising are part of the graph.
The resize is not: its filter differs between runtimes, and the input of a graph would have no fixed size.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from hycal.encoders.onnx_backend import IMAGES
from hycal.encoders.onnx_graph import OPSET, GraphBuilder
from hycal.encoders.preprocessing import Preprocessing
from hycal.errors import HyCalError

_PREFIX = "encoder/"


@runtime_checkable
class ImageTower(Protocol):
    """What is needed of an encoder: `hycal.encoders.encoder.TowerEncoder` on ONNX Runtime."""

    name: str
    preprocessing: Preprocessing

    def image_graph(self) -> bytes:
        """Return the image tower as a serialised graph."""


def exportable(encoder: object) -> ImageTower:
    """Return `encoder` if it has a graph; an encoder of another package may have none."""
    if not isinstance(encoder, ImageTower):
        name = getattr(encoder, "name", type(encoder).__name__)
        raise HyCalError(
            f"The encoder {name} is not one ONNX graph: it joins several, or is of another package. Export without "
            "--with-encoder."
        )
    return encoder


def add_encoder(build: GraphBuilder, encoder: ImageTower) -> tuple[Any, str]:
    """Add an encoder to a graph; return the description of its input, and the name of its embeddings."""
    side = encoder.preprocessing.size
    given = build.onnx.helper.make_tensor_value_info("pixels", build.onnx.TensorProto.UINT8, ["batch", side, side, 3])
    tower = build.onnx.compose.add_prefix(_tower(build, encoder), _PREFIX).graph
    stored = {value.name for value in tower.initializer}
    inputs = [value.name for value in tower.input if value.name not in stored]
    outputs = [value.name for value in tower.output]
    if len(inputs) != 1:
        raise HyCalError(
            f"The graph of {encoder.name} takes {len(inputs)} inputs; expected one, the pixels of an image."
        )
    build.nodes.append(build.onnx.helper.make_node("Identity", [_normalised(build, encoder.preprocessing)], inputs))
    build.nodes.extend(tower.node)
    build.stored.update((value.name, value) for value in tower.initializer)
    return given, _PREFIX + IMAGES if _PREFIX + IMAGES in outputs else outputs[0]


def _normalised(build: GraphBuilder, preprocessing: Preprocessing) -> str:
    """Add the nodes that make (n, 3, side, side) inputs of `pixels`, in the order of `Preprocessing.apply`."""
    planes = build.node("Transpose", build.node("Cast", "pixels", to=build.onnx.TensorProto.FLOAT), perm=(0, 3, 1, 2))
    mean, std = (np.array(values, np.float32).reshape(3, 1, 1) for values in (preprocessing.mean, preprocessing.std))
    centred = build.node("Sub", build.node("Div", planes, build.number(255.0)), build.constant(mean))
    return build.node("Div", centred, build.constant(std))


def _tower(build: GraphBuilder, encoder: ImageTower) -> Any:
    """Return the graph of an encoder in the operators of the head; refuse one that they cannot express."""
    model = build.onnx.load_model_from_string(encoder.image_graph())
    versions = {entry.domain: entry.version for entry in model.opset_import if entry.domain in _domains(model.graph)}
    own = versions.pop("", versions.pop("ai.onnx", OPSET))
    if versions or model.functions:
        raise HyCalError(
            f"The graph of {encoder.name} uses operators beyond ONNX ({', '.join(versions) or 'functions'}), which an "
            "exported model must not need. Export without --with-encoder."
        )
    if own == OPSET:
        return model
    try:
        return build.onnx.version_converter.convert_version(model, OPSET)
    except Exception as error:  # the converter has no base class of errors
        raise HyCalError(
            f"The graph of {encoder.name} has version {own} of ONNX's operators, and cannot be converted to {OPSET}: "
            f"{error}. Export without --with-encoder."
        ) from None


def _domains(graph: Any) -> set[str]:
    return {node.domain for node in graph.node}
