"""`hycal export`: a model for programs that do not have hycal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hycal.commands import _options as opt
from hycal.commands._inputs import open_project
from hycal.commands._output import class_count, confirm, report_errors
from hycal.errors import HyCalError
from hycal.escaping import json_text


@report_errors
def export_command(
    model: opt.Model,
    onnx: Annotated[Path, typer.Option("--onnx", help="The .onnx file to write.")],
    with_encoder: Annotated[bool, typer.Option("--with-encoder", help="Put the image encoder into the graph.")] = False,
    weights: opt.Weights = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Write a model as one ONNX graph that gives the same answers.

    The graph takes `embeddings`, float32 (n, d), and gives `scores`, `probabilities` and the best `label`. Its metadata
    names the classes and the fingerprint of the encoder that the embeddings must come from. With --with-encoder it
    takes `pixels` instead, uint8 (n, side, side, 3): an image that is resized and cropped, from 0 to 255.
    docs/how-to/deploy.md says how, and docs/reference/methods.md which methods can be exported.

    Example: hycal export photos.hycal --onnx photos.onnx --with-encoder
    """
    from hycal.export.onnx_head import export_onnx, exportable  # here, so that --help does not wait for it
    from hycal.project.encoder import encoder_of

    state = open_project(model).state
    if not state.classes:
        raise HyCalError(f"{model} has no classes yet, so there is nothing to export. Learn a folder first.")
    if onnx.suffix != ".onnx":
        raise HyCalError(f"--onnx is {onnx}; expected a name that ends in .onnx.")
    if weights is not None and not with_encoder:
        raise HyCalError("--weights names the files of the encoder, which is left out. Add --with-encoder.")
    encoder = exportable(encoder_of(state, None, weights)) if with_encoder else None
    export_onnx(state.classifier, onnx, encoder=encoder, force=force)
    size = onnx.stat().st_size
    found = {"model": str(model), "onnx": str(onnx), "bytes": size, "classes": len(state.labels)}
    side = None if encoder is None else encoder.preprocessing.size
    given = f"embeddings of {state.space.name!r} go in" if side is None else f"pixels of {side} x {side} go in"
    line = f"{onnx}: {class_count(len(state.labels))}, {size:,} bytes; {given}"
    confirm(json_text(found) if as_json else line)
