"""Arrays in .npy and .npz files that are not trusted: nothing in them is executed. An .npz cannot fill the memory."""

from __future__ import annotations

import io
import os
import sys
import zipfile
from threading import Lock
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

MOST_BYTES = 2**30
MOST_RATIO = 100  # above MOST_BYTES: photographs do not compress further
# NumPy parses the header of an array as Python code, and Python 3.11 may fail at that in two threads at once.
_PARSING_HEADERS = Lock()


def load_array(source: str | os.PathLike[str] | bytes, *, mmap_mode: Literal["r"] | None = None) -> npt.NDArray[Any]:
    """Return the array of an .npy file, or of the bytes of one; `mmap_mode` as for `numpy.load`."""
    with _PARSING_HEADERS:
        if isinstance(source, bytes):  # which may be no .npy at all: `numpy.load` would take them for another format
            return np.lib.format.read_array(io.BytesIO(source), allow_pickle=False, max_header_size=10_000)
        return np.load(source, mmap_mode=mmap_mode, allow_pickle=False)


def load_arrays(path: str | os.PathLike[str]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an .npz file by name; raise ValueError with the reason if it is damaged."""
    try:
        check_zip(path)
        with _PARSING_HEADERS, np.load(path, allow_pickle=False) as file:
            return {name: _array(name, file[name]) for name in file.files}
    except Exception as error:  # zip, zlib and numpy each have errors of their own for a damaged file
        raise ValueError(str(error) or type(error).__name__) from None


def _array(name: str, value: Any) -> npt.NDArray[Any]:
    # NumPy returns bytes for a member that is not an array.
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufSU":
        raise ValueError(f"{name!r} is not an array of numbers or text")
    if value.dtype.kind == "U" and value.nbytes:
        letters = np.frombuffer(value.tobytes(), np.dtype(np.uint32).newbyteorder(value.dtype.byteorder))
        if letters.max() > sys.maxunicode:
            raise ValueError(f"{name!r} has characters that do not exist")
    return value


def check_zip(path: str | os.PathLike[str]) -> None:
    """Raise an error if a zip file would unpack to far more than it holds."""
    with zipfile.ZipFile(path) as file:
        packed = sum(info.compress_size for info in file.infolist())
        size = sum(info.file_size for info in file.infolist())
    check_unpacked(packed, size)


def check_unpacked(packed: int, size: int) -> None:
    """Raise ValueError if so many bytes of a file cannot be worth so many bytes of memory."""
    if size > max(MOST_BYTES, MOST_RATIO * packed):
        raise ValueError(f"{packed:,} bytes unpack to {size:,}, more than {MOST_RATIO} times as many")
