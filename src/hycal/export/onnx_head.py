"""A classifier as one ONNX graph: embeddings or pixels in, scores and labels out, the same answers without hycal."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from hycal.encoders.onnx_graph import PRODUCER, GraphBuilder
from hycal.errors import HyCalError
from hycal.export.onnx_encoder import ImageTower, add_encoder
from hycal.state.snapshot import Snapshot
from hycal.storage.atomic import check_replaceable, write_whole
from hycal.uncertainty.calibration import Calibration

_MOST_BYTES = 2**31 - 2**20  # a protobuf holds 2 GB
_MARK = (
    b"\x12" + bytes([len(PRODUCER)]) + PRODUCER.encode()
)  # the field `producer_name`, near the beginning of the file


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

    The graph takes `embeddings`, float32 (n, d) of any length, or with an encoder `pixels`, see
    `hycal.export.onnx_encoder`. It gives `scores` (n, C) as `decision_function` does, `probabilities` (n, C) as
    `predict_proba`, and the best `label` (n,) as text. Its properties name the classes and the encoder.
    """
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise HyCalError(f"Cannot write {target}: the folder {target.parent} does not exist. Make it first.")
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
