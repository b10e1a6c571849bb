"""Arguments and options that several commands share, each defined once with its name and its help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hycal.encoders.catalog import Backend

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="The model's file.")]
FirstModel = Annotated[Path, typer.Argument(metavar="A", help="A model.")]
NewModel = Annotated[Path, typer.Option("--out", help="The new model's file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

Force = Annotated[bool, typer.Option("--force", help="Replace a file even if hycal did not write it.")]

LabelledFolder = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="Folder of class folders, or a file of labels: .csv, .json, .xml.")
]
LabelledImages = Annotated[
    Path | None, typer.Option("--images", help="Folder of the images that a file of labels names; its own by default.")
]
Domain = Annotated[str | None, typer.Option("--domain", help="Domain of these classes; by default the folder's name.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")]
StrictSkips = Annotated[bool, typer.Option("--strict", help="End with code 3 if any file was skipped.")]

Outside = Annotated[bool, typer.Option("--outside", help="Let a manifest name images outside its own folder.")]


def complete_method(start: str) -> list[str]:
    """Return the methods whose names begin so, in any case, for the completion of shells."""
    from hycal.classifiers import METHODS

    return [name for name in METHODS if name.lower().startswith(start.lower())]


def complete_encoder(start: str) -> list[str]:
    """Return the encoders whose names begin so, in any case; after a "+", those that are not named yet."""
    from hycal.encoders.catalog import JOINED_BY, list_encoders

    before, plus, last = start.lower().rpartition(JOINED_BY)
    named = before.split(JOINED_BY)
    found = [spec.name for spec in list_encoders() if spec.name.startswith(last) and spec.name not in named]
    return [f"{before}{plus}{name}" for name in found]


_JOIN = "several are joined by +, as in clip-vit-b16-w8+builtin"
ModelEncoder = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        help=f"An encoder of `hycal encoders list`, by default the model's own; {_JOIN}.",
        autocompletion=complete_encoder,
    ),
]
Augment = Annotated[
    str | None,
    typer.Option(
        "--augment",
        help="Average the rows of each image and its mirror image (flip), or of five crops (crops): two or five times "
        "the encoding, and rows of their own, never mixed with plain ones. The same as --encoder NAME:flip.",
    ),
]
NewEncoder = Annotated[
    str,
    typer.Option("--encoder", help=f"An encoder of `hycal encoders list`; {_JOIN}.", autocompletion=complete_encoder),
]
NewMethod = Annotated[
    str | None,
    typer.Option(
        "--method",
        help="Method of a new model, by default HierarchicalHyCal; HyCal is the paper's. `hycal bench list` has all.",
        autocompletion=complete_method,
    ),
]
Weights = Annotated[Path | None, typer.Option("--weights", help="Folder or file with the encoder's weights.")]
CacheFolder = Annotated[
    Path | None, typer.Option("--cache", help="Folder of the embedding cache; by default the user's.")
]
BackendName = Annotated[
    str,
    typer.Option(
        "--backend",
        help="onnx, openvino (extra openvino), transformers or open_clip (extra torch); auto is openvino where the "
        "encoder can use it and it is installed, else onnx.",
    ),
]
Cluster = Annotated[
    str,
    typer.Option(
        "--cluster",
        help="Where to work: local:PROCESSES, ray:auto, ray://HOST:PORT, dask:tcp://HOST:PORT. "
        "See docs/how-to/cluster.md.",
    ),
]

_BACKENDS: dict[str, Backend | None] = {
    "auto": None,
    "onnx": "onnx",
    "openvino": "openvino",
    "transformers": "transformers",
    "open_clip": "open_clip",
}


def check_backend(name: str) -> Backend | None:
    """Return the back end called `name`, None for "auto", or exit with code 2, the code of a wrong option."""
    if name not in _BACKENDS:
        raise typer.BadParameter(f"{name!r} is unknown; expected one of {', '.join(_BACKENDS)}", param_hint="--backend")
    return _BACKENDS[name]
