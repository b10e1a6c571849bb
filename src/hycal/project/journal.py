"""Corrections that are on the disk before the model file has them: a small hidden file beside it.

Writing a model of 1,000 classes takes a good part of a second, too long for somebody who corrects one answer after
another. A record of the journal takes milliseconds. The journal names the file it continues by the hash of that file's
header, so once the model file is written the journal means nothing, whether or not it could still be removed; and each
record carries its own hash, so what a power cut left of the last one is no record.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from hycal.atomic import write_whole
from hycal.errors import ModelFileError, storing
from hycal.project.examples import Example
from hycal.validation import Floats

_MAGIC = b"hycal-journal-1\n"
_HASH = 32
_LENGTH = 8
_START = len(_MAGIC) + _HASH


@dataclass(frozen=True, eq=False)
class Correction:
    """One correction: the image, what it shows, the text embedding of a new class; when, and the model's hash after."""

    example: Example
    label: str
    text: Floats | None
    when: str
    after: str


class Journal:
    """The journal of the model file at `path`. Whoever appends or clears holds the project's lock."""

    def __init__(self, path: Path) -> None:
        self._model = path
        self.path = path.with_name(f".{path.name}.journal")

    def read(self) -> list[Correction]:
        """Return the corrections that the model file does not have yet."""
        return [_correction_of(body) for body, _ in self._records()]

    def append(self, correction: Correction) -> None:
        """Put one more correction on the disk."""
        with storing(self._model):
            self._append(_body_of(correction))

    def _append(self, body: bytes) -> None:
        end = max((end for _, end in self._records()), default=None)
        if end is None:
            write_whole(self.path, _MAGIC + _header_hash(self._model))
            end = _START
        record = len(body).to_bytes(_LENGTH, "little") + hashlib.sha256(body).digest() + body
        with self.path.open("r+b", buffering=0) as file:
            file.truncate(end)
            file.seek(end)
            try:
                _write_all(file, record)
                os.fsync(file.fileno())
            except OSError:
                file.truncate(end)  # a record that was refused must not come back
                raise

    def clear(self) -> None:
        """Remove the journal: the model file has it all. Should that fail, it means nothing all the same."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _records(self) -> Iterator[tuple[bytes, int]]:
        """Yield the body of each whole record, and where the record ends."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return
        if content[:_START] != _MAGIC + _header_hash(self._model):
            return
        start = _START
        while start < len(content):
            begin = start + _LENGTH + _HASH
            end = begin + int.from_bytes(content[start : start + _LENGTH], "little")
            body = content[begin:end]
            if len(body) < end - begin or hashlib.sha256(body).digest() != content[start + _LENGTH : begin]:
                return
            yield body, end
            start = end


def _write_all(file: io.FileIO, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]


def _header_hash(path: Path) -> bytes:
    """Return the hash of a safetensors header; ours holds the whole history, so no two states of a project share it."""
    try:
        with path.open("rb") as file:
            return hashlib.sha256(file.read(int.from_bytes(file.read(_LENGTH), "little"))).digest()
    except FileNotFoundError:
        return b""


def _body_of(correction: Correction) -> bytes:
    example = correction.example
    plain = {"label": correction.label, "name": example.name, "when": correction.when, "after": correction.after}
    tensors: dict[str, npt.NDArray[Any]] = {
        "row": example.row,
        "key": np.frombuffer(example.key, np.uint8),
        "thumbnail": np.frombuffer(example.thumbnail, np.uint8),
    }
    texts = {} if correction.text is None else {"text": correction.text}
    return save({**tensors, **texts}, {"correction": json.dumps(plain)})


def _correction_of(body: bytes) -> Correction:
    try:
        length = int.from_bytes(body[:_LENGTH], "little")
        plain = json.loads(json.loads(body[_LENGTH : _LENGTH + length])["__metadata__"]["correction"])
        tensors = load(body)
        key, thumbnail = (tensors[name].tobytes() for name in ("key", "thumbnail"))
        example = Example(tensors["row"], key, str(plain["name"]), thumbnail)
        values = [str(plain[name]) for name in ("label", "when", "after")]
        return Correction(example, values[0], tensors.get("text"), *values[1:])
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"A correction in the journal beside the model is malformed: {error!r}.") from None
