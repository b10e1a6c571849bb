"""A classifier as one ONNX graph: embeddings or pixels in, scores and labels out, the same answers without hycal.

With an image encoder in front, the input `pixels` is uint8, (n, side, side, 3), RGB from 0 to 255: an image whose
shorter side was resized, and from whose centre a square was cut, as `hycal.encoders.preprocessing` says. Scaling and
normalising are part of the graph. The resize is not: its filter differs between runtimes, and the input of a graph
would have no fixed size.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hycal.encoders.onnx_backend import IMAGES
from hycal.encoders.onnx_graph import OPSET, PRODUCER, GraphBuilder
from hycal.encoders.preprocessing import Preprocessing
from hycal.errors import HyCalError
from hycal.state.snapshot import Snapshot
from hycal.storage.atomic import check_folder, check_replaceable, write_whole
from hycal.uncertainty.calibration import Calibration

_MOST_BYTES = 2**31 - 2**20  # a protobuf holds 2 GB
_MARK = (
    b"\x12" + bytes([len(PRODUCER)]) + PRODUCER.encode()
)  # the field `producer_name`, near the beginning of the file

_PREFIX = "encoder/"


class ExportableClassifier(Protocol):
    """What is needed of a classifier: `hycal.base.IncrementalClassifier`."""

    encoder_: str | None

    @property
    def nbytes_(self) -> int:
        """Bytes of state."""

    @property
    def calibration_(self) -> Calibration:
        """What turns scores into probabilities."""

    def snapshot(self) -> Snapshot:
        """Return the present state."""

    @property
    def scorer(self) -> Any:
        """What has `onnx_scores`, which adds the nodes that score unit rows."""


def export_onnx(
    classifier: ExportableClassifier,
    path: str | os.PathLike[str],
    *,
    encoder: ImageTower | None = None,
    force: bool = False,
) -> None:
    """Write `classifier` to `path`, in one step; `force` replaces a file that hycal did not write.

    The graph takes `embeddings`, float32 (n, d) of any length, or with an encoder `pixels`. It gives `scores` (n, C) as
    `decision_function` does, `probabilities` (n, C) as `predict_proba`, and the best `label` (n,) as text. Its
    properties name the classes and the encoder.
    """
    target = Path(path)
    check_folder(target)
    mark = b"" if force else _MARK
    check_replaceable(target, mark)
    write_whole(target, onnx_head(classifier, encoder), mark=mark)


def onnx_head(classifier: ExportableClassifier, encoder: ImageTower | None = None) -> bytes:
    """Return the serialised graph of `classifier`'s head, behind the encoder if there is one."""
    snapshot = classifier.snapshot()
    labels, width, nbytes = snapshot.records.labels, snapshot.records.width, classifier.nbytes_
    if nbytes > _MOST_BYTES:
        raise HyCalError(f"The model has {nbytes:,} bytes of state, and an ONNX file holds 2 GB. Export fewer classes.")
    build = GraphBuilder("Exporting to ONNX")
    kinds = build.onnx.TensorProto
    given = build.onnx.helper.make_tensor_value_info("embeddings", kinds.FLOAT, ["batch", width])
    rows, properties = "embeddings", {"method": type(classifier).__name__, "encoder": classifier.encoder_ or ""}
    if encoder is not None:
        given, rows = add_encoder(build, encoder)
        properties["preprocessing"] = json.dumps(encoder.preprocessing.to_json())
    scores = classifier.scorer.onnx_scores(build, _unit(build, rows), snapshot)
    best = build.node("ArgMax", scores, axis=1, keepdims=0)
    label = build.node("Gather", build.constant(np.array([str(label) for label in labels], dtype=object)), best)
    chances = _probabilities(build, scores, classifier.calibration_, len(labels))
    return build.model(
        "hycal",
        given=given,
        outputs={
            "scores": (scores, kinds.FLOAT, ["batch", len(labels)]),
            "probabilities": (chances, kinds.FLOAT, ["batch", len(labels)]),
            "label": (label, kinds.STRING, ["batch"]),
        },
        properties={**properties, "labels": json.dumps(list(labels), ensure_ascii=False)},
    )


def _probabilities(build: GraphBuilder, scores: str, calibration: Calibration, classes: int) -> str:
    chances = build.number(calibration.floor / classes)
    for temperature, weight in calibration.temperatures:
        softmax = build.node("Softmax", build.node("Div", scores, build.number(temperature)), axis=1)
        part = build.node("Mul", softmax, build.number(weight * (1.0 - calibration.floor)))
        chances = build.node("Add", part, chances)
    return chances


def _unit(build: GraphBuilder, rows: str) -> str:
    """Scale rows to length one; first by their largest entry, so that the square of no entry overflows or vanishes."""
    largest = build.node("ReduceMax", build.node("Abs", rows), axes=[1], keepdims=1)
    scaled = build.node("Div", rows, largest)
    return build.node("Div", scaled, build.node("ReduceL2", scaled, axes=[1], keepdims=1))


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
    used = {node.domain for node in model.graph.node}
    versions = {entry.domain: entry.version for entry in model.opset_import if entry.domain in used}
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
