"""`hycal export`: a model's head for programs that do not have hycal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hycal.commands._options import Force, Json, Model
from hycal.commands._output import confirm, report_errors
from hycal.errors import HyCalError
from hycal.escaping import json_text
from hycal.export.onnx_head import export_onnx
from hycal.project import Project


@report_errors
def export_command(
    model: Model,
    onnx: Annotated[Path, typer.Option("--onnx", help="The .onnx file to write.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a model's head as one ONNX graph that gives the same answers.

    The graph takes `embeddings`, float32 (n, d), and gives `scores`, `probabilities` and the best `label`. Its metadata
    names the classes and the fingerprint of the encoder that the embeddings must come from. docs/reference/methods.md
    says which methods can be exported.

    Example: hycal export photos.hycal --onnx photos.onnx
    """
    state = Project(model).state
    if not state.classes:
        raise HyCalError(f"{model} has no classes yet, so there is nothing to export. Learn a folder first.")
    if onnx.suffix != ".onnx":
        raise HyCalError(f"--onnx is {onnx}; expected a name that ends in .onnx.")
    export_onnx(state.classifier, onnx, force=force)
    size = onnx.stat().st_size
    found = {"model": str(model), "onnx": str(onnx), "bytes": size, "classes": len(state.labels)}
    told = f"{onnx}: {len(state.labels):,} classes, {size:,} bytes; embeddings of {state.space.name!r} go in"
    confirm(json_text(found) if as_json else told)
