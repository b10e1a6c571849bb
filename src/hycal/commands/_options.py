"""The option `--backend`, for every command that loads an encoder."""

from __future__ import annotations

from typing import Annotated

import typer

from hycal.encoders.catalog import Backend

BackendOption = Annotated[
    str, typer.Option("--backend", help="onnx, transformers or open_clip; the last two need the extra torch.")
]

_KNOWN: dict[str, Backend] = {"onnx": "onnx", "transformers": "transformers", "open_clip": "open_clip"}


def backend_of(name: str) -> Backend:
    """Return the back end called `name`, or end with the error of a wrong option."""
    if name not in _KNOWN:
        raise typer.BadParameter(f"{name!r} is unknown; expected one of {', '.join(_KNOWN)}", param_hint="--backend")
    return _KNOWN[name]
