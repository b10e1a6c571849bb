"""What is in a folder, and in a model file."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from hycal.storage.model_file import write_parts


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file below `folder` with its bytes."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def rewrite(path: Path, change: Callable[[dict[str, Any], dict[str, np.ndarray]], object]) -> None:
    """Change (manifest, tensors) of the model at `path`; its checksums are right afterwards, as a stranger's can be."""
    tensors = load_file(path)
    del tensors["checksums"]
    raw = path.read_bytes()
    header = json.loads(raw[8 : 8 + struct.unpack("<Q", raw[:8])[0]])
    manifest = json.loads(header["__metadata__"]["hycal"])
    change(manifest, tensors)
    path.unlink()  # an older safetensors would write into the file that a loaded model still maps
    write_parts(path, json.dumps(manifest), tensors)
