"""The model file: safetensors with a JSON manifest in its header. `docs/reference/model-file.md` is the specification.

Reading executes nothing: a file is a JSON header and a body of numbers. Every field of the header is checked, and the
checksums of the header and of each array as well, so a damaged file is refused.
Writing is atomic and durable: at any moment the path holds the complete old model or the complete new one.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from hycal._version import __version__
from hycal.errors import ModelFileError, storing
from hycal.storage.atomic import check_folder, preparing
from hycal.validation import Floats, view_slices

FORMAT = "hycal-model"
VERSION = 3
_READ = [1, 2, 3]  # every version that was ever written
_NEWEST_KEYS = {"sealed", "precision"}  # of a manifest; without them older versions of hycal can read the file
_METADATA_KEY = "hycal"
_CHECKSUMS = "checksums"
_DIGEST = 32
_PIECE = 16 * 2**20  # bytes that are hashed at once; the pieces of a large array are hashed in parallel

T = TypeVar("T")
Tensors = Mapping[str, npt.NDArray[Any]]
_UNIT_TOLERANCE = 1e-3  # of the squared length of a row


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
    version = VERSION if _NEWEST_KEYS & set(content.manifest) else VERSION - 1
    manifest = {"format": FORMAT, "version": version, "hycal": __version__, **content.manifest}
    text = json.dumps(manifest, sort_keys=True, ensure_ascii=False, allow_nan=False)
    check_folder(target)
    with storing(target), preparing(target) as draft:
        write_parts(draft.file.name, text, content.tensors)
        draft.finish()
        yield draft.install


def write_parts(path: str | os.PathLike[str], manifest: str, tensors: Tensors) -> None:
    """Write a file of this manifest and these arrays, with their checksums."""
    arrays = {key: np.ascontiguousarray(value) for key, value in tensors.items()}
    blank = {_CHECKSUMS: np.zeros((len(arrays) + 1, _DIGEST), np.uint8)}
    try:
        save_file({**arrays, **blank}, path, {_METADATA_KEY: manifest})
    except SafetensorError as error:  # an error of the system, as the library reports it
        raise OSError(str(error)) from None
    with Path(path).open("rb+") as file:
        length = file.read(8)
        text = file.read(int.from_bytes(length, "little"))
        file.seek(json.loads(text)[_CHECKSUMS]["data_offsets"][0], os.SEEK_CUR)
        file.write(_checksums(length + text, arrays))


def _checksums(header: bytes, tensors: Tensors) -> bytes:
    """Return the SHA-256 of the header, then the checksum of each array in the order of their names.

    That of an array is the SHA-256 of the SHA-256 of each of its pieces of 16 MiB.
    """
    bodies = [tensors[name].reshape(-1).view(np.uint8) for name in sorted(tensors)]
    parts = [[body[start : start + _PIECE] for start in range(0, len(body), _PIECE)] for body in bodies]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        workers = pool.map if sum(map(len, bodies)) > _PIECE else map  # a thread costs more than a small array
        sums = [b"".join(workers(_sha256, pieces)) for pieces in parts]
    return _sha256(header) + b"".join(map(_sha256, sums))


def _sha256(content: Any) -> bytes:
    return hashlib.sha256(content).digest()


def read(path: str | os.PathLike[str]) -> Content:
    """Return the content of the model file at `path`; raise ModelFileError if it is not one."""
    return read_as(path, lambda content: content)


def read_as(path: str | os.PathLike[str], parse: Callable[[Content], T]) -> T:
    """Return what `parse` makes of the content of the model file at `path`; raise ModelFileError if it is not one.

    The checksums of a large file are compared while it is parsed. What fails to parse is damaged if they do not fit.
    """
    source = Path(path)
    manifest, header, tensors = _opened(source)
    found = tensors.pop(_CHECKSUMS, None)
    content = Content(manifest, {name: _single(array) for name, array in tensors.items()})

    def check() -> None:
        sound = manifest["version"] == 1 if found is None else found.tobytes() == _checksums(header, tensors)
        if not sound:
            raise _damaged(source)

    if sum(array.nbytes for array in tensors.values()) <= _PIECE:  # a thread costs more than a small array
        check()
        return parse(content)
    with ThreadPoolExecutor(1) as pool:
        checked = pool.submit(check)
        try:
            return parse(content)
        finally:
            checked.result()


def read_mapped(path: str | os.PathLike[str]) -> Content:
    """Return the content of a model file as it lies on the disk, mapped and with half precision as it is.

    Its checksums are compared by reading it piece after piece, so that none of it stays in memory.
    """
    source = Path(path)
    manifest, header, tensors = _opened(source)
    found = tensors.pop(_CHECKSUMS, None)
    places = json.loads(header[8:])
    digests = [_sha256(header)]
    with source.open("rb") as file:
        for name in sorted(tensors):
            first, last = places[name]["data_offsets"]
            file.seek(len(header) + first)
            pieces = [min(_PIECE, last - start) for start in range(first, last, _PIECE)]
            digests.append(_sha256(b"".join(_sha256(file.read(size)) for size in pieces)))
    if found is None or found.tobytes() != b"".join(digests):
        raise _damaged(source)
    return Content(manifest, tensors)


def _damaged(source: Path) -> ModelFileError:
    return ModelFileError(
        f"{source} is damaged: its content does not fit its checksums, so at least one bit has changed since it "
        "was written. Restore it from a copy."
    )


def _single(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers of half precision in single precision; they take twice the room in memory."""
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _opened(source: Path) -> tuple[dict[str, Any], bytes, dict[str, npt.NDArray[Any]]]:
    """Return the manifest, the header and the arrays of a file."""
    if not source.is_file():
        folder = f" {source} is a folder." if source.is_dir() else ""
        raise ModelFileError(
            f"There is no model file at {source}.{folder} Check the path; `hycal learn` and `save()` make one."
        )
    try:
        with source.open("rb") as opened, safe_open(str(source), framework="numpy") as file:
            if not os.path.samestat(os.fstat(opened.fileno()), source.stat()):
                return _opened(source)  # replaced meanwhile: the two may be different models
            text = (file.metadata() or {}).get(_METADATA_KEY)
            return _manifest(text, source), *_mapped(opened, set(file.keys()))
    except ModelFileError:
        raise
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, AttributeError, MemoryError) as error:
        raise ModelFileError(f"{source} is not a hycal model, or it is damaged: {error}. {_ADVICE}") from None


def _mapped(opened: IO[bytes], names: set[str]) -> tuple[bytes, dict[str, npt.NDArray[Any]]]:
    """Return the header and the arrays of a valid file, mapped: they are neither copied nor held in memory.

    If the file is replaced, the arrays keep the old content. Windows does not replace a mapped file, so there the bytes
    are read.
    """
    if sys.platform == "win32":
        content: npt.NDArray[np.uint8] = np.fromfile(opened, np.uint8)
    else:
        content = np.memmap(opened, np.uint8, "r").view(np.ndarray)
    start = 8 + int(content[:8].view("<u8")[0])
    text = content[:start].tobytes()
    header = json.loads(text[8:])
    arrays = {}
    for name in names:
        first, last = header[name]["data_offsets"]
        flat = content[start + first : start + last].view(_TYPES[header[name]["dtype"]])
        arrays[name] = flat.reshape(header[name]["shape"])
    return text, arrays


_TYPES = {
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
    "I64": "<i8",
    "I32": "<i4",
    "U8": "|u1",
}  # what a hycal model may hold

_ADVICE = "Expected a file that `hycal learn` or `save()` wrote; restore it from a copy."


def _manifest(text: str | None, source: Path) -> dict[str, Any]:
    if text is None:
        raise ModelFileError(f"{source} is a safetensors file, but not a hycal model. {_ADVICE}")
    try:
        manifest = parse_json(text)
    except ValueError as error:
        raise ModelFileError(f"The manifest of {source} is not JSON: {error}. {_ADVICE}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"The manifest of {source} is not that of a hycal model. {_ADVICE}")
    version = manifest.get("version")
    if version not in _READ:
        raise ModelFileError(
            f"{source} has format version {version!r}; this hycal ({__version__}) reads {_READ}. "
            "Install a newer hycal to read it."
        )
    return manifest


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text that hycal can write again: finite numbers, and text that is Unicode.

    JSON can escape halves of surrogate pairs, but they cannot be written as UTF-8. Raises ValueError.
    """
    plain = text if isinstance(text, str) else text.decode()
    try:
        value = json.loads(plain, parse_constant=_refuse, parse_float=_finite)
        if _SURROGATE.search(plain):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError(f"{error}: it is nested too deep") from None
    return value


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not a finite number")


def _finite(text: str) -> float:
    return number if math.isfinite(number := float(text)) else _refuse(text)


_SURROGATE = re.compile(r"\\u[dD]")


def expect(condition: bool, expected: str) -> None:
    """Raise unless the condition holds."""
    if not condition:
        raise ModelFileError(f"The model file is malformed: expected {expected}. Restore it from a copy.")


def is_list_of(value: Any, kind: type, length: int) -> bool:
    """Whether a value is a list of so many items of a kind."""
    return isinstance(value, list) and len(value) == length and all(type(item) is kind for item in value)


def unit_matrix(
    array: npt.NDArray[Any] | None, name: str, *, width: int | None = None, views: Sequence[int] | None = None
) -> Floats:
    """Return an array of a file that must be a matrix of finite unit rows, of this width if one is given.

    With views, each part of a row must be a unit vector or zeros, and one part at least a unit vector.
    """
    expect(array is not None and array.dtype == np.float32 and array.ndim == 2, f"a float32 matrix {name!r}")
    assert array is not None
    expect(width in (None, array.shape[1]), f"{name!r} to be {width} numbers wide")
    expect(views is None or sum(views) == array.shape[1], f"{name!r} to be as wide as the views {views}")
    parts = [array] if views is None else [array[:, part] for part in view_slices(views)]
    lengths = np.stack([np.einsum("nd,nd->n", part, part) for part in parts])
    unit = np.abs(lengths - 1.0) <= _UNIT_TOLERANCE
    expect(bool(np.all(unit | (lengths == 0.0)) and np.all(unit.any(axis=0))), f"finite unit rows in {name!r}")
    return array


def integers(tensors: Mapping[str, npt.NDArray[Any]], name: str, dtype: Any = np.int64) -> npt.NDArray[np.int64]:
    """Return a vector of a file that must be of this type of whole numbers."""
    array = tensors.get(name)
    expect(
        array is not None and array.dtype == dtype and array.ndim == 1,
        f"a vector {name!r} of {dtype.__name__}",
    )
    assert array is not None
    return array.astype(np.int64)
