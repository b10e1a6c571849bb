"""The model file: safetensors with a JSON manifest in its header. `docs/model-file.md` is the specification.

Reading executes nothing: a file is a JSON header and a body of numbers, and every field of the header is checked.
Writing is atomic and durable: at any moment the path holds the complete old model or the complete new one.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from hycal._version import __version__
from hycal.errors import HyCalError, ModelFileError, storing
from hycal.storage.atomic import preparing

FORMAT = "hycal-model"
VERSION = 1
_METADATA_KEY = "hycal"

Tensors = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Content:
    """The content of a model file: a manifest of plain JSON values, and named arrays."""

    manifest: Mapping[str, Any]
    tensors: Tensors


def write(path: str | os.PathLike[str], content: Content) -> None:
    """Write `content` to `path` atomically."""
    with prepared(path, content) as install:
        install()


@contextmanager
def prepared(path: str | os.PathLike[str], content: Content) -> Iterator[Callable[[], None]]:
    """Write `content` beside `path`, and yield the function that replaces the file at `path` with it."""
    target = Path(path)
    manifest = {"format": FORMAT, "version": VERSION, "hycal": __version__, **content.manifest}
    header = {_METADATA_KEY: json.dumps(manifest, sort_keys=True, ensure_ascii=False, allow_nan=False)}
    if not target.parent.is_dir():
        raise HyCalError(f"Cannot save to {target}: the folder {target.parent} does not exist. Make it first.")
    tensors = {key: np.ascontiguousarray(value) for key, value in content.tensors.items()}
    with storing(target), preparing(target) as draft:
        try:
            save_file(tensors, draft.file.name, header)
        except SafetensorError as error:  # an error of the system, as the library reports it
            raise OSError(str(error)) from None
        draft.finish()
        yield draft.install


def read(path: str | os.PathLike[str]) -> Content:
    """Return the content of the model file at `path`; raise ModelFileError if it is not one."""
    source = Path(path)
    if not source.is_file():
        folder = f" {source} is a folder." if source.is_dir() else ""
        raise ModelFileError(f"There is no model file at {source}.{folder} Check the path; `save` makes one.")
    try:
        with source.open("rb") as opened, safe_open(str(source), framework="numpy") as file:
            if not os.path.samestat(os.fstat(opened.fileno()), source.stat()):
                return read(source)  # replaced meanwhile: the two may be different models
            text = (file.metadata() or {}).get(_METADATA_KEY)
            manifest = _manifest(text, source)
            tensors = _mapped(opened, set(file.keys()))
    except ModelFileError:
        raise
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, AttributeError, MemoryError) as error:
        raise ModelFileError(f"{source} is not a readable safetensors file: {error}. {_ADVICE}") from None
    return Content(manifest, tensors)


def _mapped(opened: IO[bytes], names: set[str]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a valid file, mapped: a page is read when it is used.

    If the file is replaced, the arrays keep the old content. Windows does not replace a mapped file, so there the bytes
    are read.
    """
    if sys.platform == "win32":
        content: npt.NDArray[np.uint8] = np.fromfile(opened, np.uint8)
    else:
        content = np.memmap(opened, np.uint8, "r").view(np.ndarray)
    start = 8 + int(content[:8].view("<u8")[0])
    header = json.loads(content[8:start].tobytes())
    arrays = {}
    for name in names:
        first, last = header[name]["data_offsets"]
        flat = content[start + first : start + last].view(_TYPES[header[name]["dtype"]])
        arrays[name] = flat.reshape(header[name]["shape"])
    return arrays


_TYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4", "U8": "|u1"}  # what a hycal model may hold

_ADVICE = "Expected a file written by hycal's save; restore it from a copy."


def _manifest(text: str | None, source: Path) -> dict[str, Any]:
    if text is None:
        raise ModelFileError(f"{source} is a safetensors file, but not a hycal model. {_ADVICE}")
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"The manifest of {source} is not JSON: {error}. {_ADVICE}") from None
    _check_unicode(text, manifest, source)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"The manifest of {source} is not that of a hycal model. {_ADVICE}")
    version = manifest.get("version")
    if version not in _UPGRADES:
        raise ModelFileError(
            f"{source} has format version {version!r}; this hycal ({__version__}) reads {sorted(_UPGRADES)}. "
            "Install a newer hycal to read it."
        )
    return _UPGRADES[version](manifest)


def _check_unicode(text: str, manifest: Any, source: Path) -> None:
    """Refuse halves of surrogate pairs: JSON can escape them, but they cannot be written as UTF-8."""
    if _SURROGATE.search(text) is None:
        return
    try:
        json.dumps(manifest, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError) as error:
        raise ModelFileError(f"The manifest of {source} has text that is no Unicode: {error}. {_ADVICE}") from None


_SURROGATE = re.compile(r"\\u[dD]")

# For each version ever written, the function that converts its manifest to the present version.
_UPGRADES: Mapping[Any, Any] = {1: lambda manifest: manifest}
