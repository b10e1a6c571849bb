"""Named tensors of safetensors files, and of files that `torch.save` wrote. No object of a file is ever made.

A torch file is a pickle inside a zip. It is read by torch itself, in the mode that makes tensors and plain containers
only; torch before 2.6 could be made to run code in that mode, so it is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from hycal.data.features.columns import FEATURES, LABELS, Array, Columns
from hycal.errors import HyCalError, load_extra
from hycal.storage.npz import check_zip

CLASS_NAMES = "class_names"
_FIRST_SAFE = (2, 6)
_DEPTH = 3


def read_safetensors(path: Path) -> Columns:
    """Return the tensors of a safetensors file; ValueError if it is damaged.

    A file has no text, so class names may be a JSON list in its metadata, under `class_names`.
    """
    with safe_open(path, framework="numpy") as file:
        arrays: dict[str, Array] = {}
        for name in file.keys():  # noqa: SIM118  not a mapping
            kind = file.get_slice(name).get_dtype()
            if kind not in _NUMPY_KINDS:
                raise ValueError(f"{name!r} is of type {kind}; save it as float32 or float16")
            arrays[name] = file.get_tensor(name)
        metadata = file.metadata() or {}
    if CLASS_NAMES in metadata and CLASS_NAMES not in arrays:
        names = json.loads(metadata[CLASS_NAMES])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"{CLASS_NAMES} in its metadata is not a JSON list of names")
        arrays[CLASS_NAMES] = np.array(names, dtype=np.str_)
    return Columns(arrays)


_NUMPY_KINDS = ("F64", "F32", "F16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8")


def read_torch(path: Path) -> Columns:
    """Return the tensors of a file that `torch.save` wrote; ValueError if it is damaged.

    Known are a dictionary of tensors, of lists of names, and of such dictionaries (`{"train": {"features": ...}}`), and
    a pair of features and labels.
    """
    torch = load_extra("torch", extra="torch", why=f"Reading {path.name}, which torch wrote,")
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < _FIRST_SAFE:
        raise HyCalError(
            f"torch {torch.__version__} can be made to run code that hides in a .pt file; expected 2.6 or later. "
            f"Update torch, or save {path.name} as .safetensors or .npz."
        )
    check_zip(path)  # the form of every torch since 1.6; older files are pickles all over
    content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    if isinstance(content, list | tuple) and len(content) == 2:
        content = dict(zip((FEATURES, LABELS), content, strict=True))
    if not isinstance(content, Mapping):
        raise ValueError(f"it holds a {type(content).__name__}; expected a dictionary of tensors")
    return Columns({name: _array(torch, name, value) for name, value in _leaves(content)})


def _leaves(content: Mapping[Any, Any], above: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the values of nested dictionaries under their names, joined by an underscore."""
    for key, value in content.items():
        if isinstance(value, Mapping) and depth < _DEPTH:
            yield from _leaves(value, f"{above}{key}_", depth + 1)
        else:
            yield f"{above}{key}", value


def _array(torch: Any, name: str, value: Any) -> Array:
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.is_quantized or value.is_complex():
            raise ValueError(f"{name!r} is not a dense tensor of real numbers")
        short = value.dtype is torch.bfloat16  # which NumPy does not know
        check_own_numbers(name, (value.detach().view(torch.int16) if short else value.detach()).numpy())
        return (value.float() if short else value).detach().numpy()
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return np.array(value, dtype=np.str_)
    if isinstance(value, list | tuple) and all(type(one) is int for one in value):
        return np.array(value, dtype=np.int64)
    if isinstance(value, str | int | float):
        return np.array(value)
    raise ValueError(f"{name!r} is a {type(value).__name__}; expected a tensor or a list of names")


def check_own_numbers(name: str, array: Array) -> None:
    """Refuse an array whose numbers share memory: a few bytes of a file can claim to be a matrix of any size.

    >>> check_own_numbers("x", np.broadcast_to(np.float32(1.0), (10**9, 512)))
    Traceback (most recent call last):
    ValueError: 'x' claims 2,048,000,000,000 bytes and has 4; save a contiguous tensor
    """
    low, high = np.lib.array_utils.byte_bounds(array)
    if array.nbytes > high - low:
        raise ValueError(f"{name!r} claims {array.nbytes:,} bytes and has {high - low:,}; save a contiguous tensor")
