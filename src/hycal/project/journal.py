"""The journal of a project: changes that are not in its file yet. To append one costs little, however large the model.

A frame is the length of its content (8 bytes, little-endian), the SHA-256 of its content, and its content: a
safetensors file with what changed between one version of the project and the next. Replay ignores frames already in the
model file, and a truncated last frame. So a journal that was not removed in time does no harm.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load as tensors_of
from safetensors.numpy import save as bytes_of

from hycal.errors import HyCalError, ModelFileError, storing
from hycal.project import changes
from hycal.project.file import Pool, pack_provenance, stack_rows, unpack_examples
from hycal.project.state import State
from hycal.validation import Label

_LENGTH, _DIGEST = 8, 32
_KEY = "hycal-journal"


def journal_of(path: Path) -> Path:
    """Return the path of the journal of the project at `path`."""
    return path.with_name(f"{path.name}.journal")


@dataclass(frozen=True)
class Replayed:
    """The state after a replay, how many frames were applied, and how many bytes of the journal are valid."""

    state: State
    frames: int
    used: int


def frame_of(before: State, following: State) -> bytes:
    """Return the frame from one state to the next version."""
    touched = [
        label
        for label in {**before.classes, **following.classes}
        if before.classes.get(label) is not following.classes.get(label)
    ]
    pool = _pool(before, touched)
    live, live_texts = len(pool.examples), len(pool.texts)
    classes = [
        [label, None if label not in following.classes else pool.encode_class(following.classes[label])]
        for label in touched
    ]
    entry, width = following.history[-1], before.space.dimension
    header = {
        "version": following.version,
        "entry": [entry.when, entry.action, entry.what, entry.before, entry.after],
        "shelves": classes,
        "memo": dict(following.memo),
    }
    tensors = {
        **pack_provenance(pool.examples[live:]),
        "rows": stack_rows([example.row for example in pool.examples[live:]], width),
        "texts": stack_rows(pool.texts[live_texts:], width),
    }
    content = bytes_of(tensors, {_KEY: json.dumps(header, ensure_ascii=False)})
    return len(content).to_bytes(_LENGTH, "little") + hashlib.sha256(content).digest() + content


def replay(state: State, journal: bytes, *, source: Path) -> Replayed:
    """Return the state after every frame that is newer than `state`."""
    frames = used = 0
    for content, end in _frames(journal, source):
        header = _header(content, source)
        if header["version"] <= state.version:
            continue
        state = _applied(state, header, content, source)
        frames, used = frames + 1, end
    return Replayed(state, frames, used)


def append(path: Path, frame: bytes, *, used: int) -> None:
    """Write a frame after the first `used` bytes, and sync it to the disk."""
    with storing(path), path.open("ab", buffering=0) as file:
        file.truncate(used)
        try:
            rest = memoryview(frame)
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(used)  # a failed change must not be replayed later
            raise


def _frames(journal: bytes, source: Path) -> Iterator[tuple[bytes, int]]:
    """Yield the content and the end of every complete frame; a truncated or damaged last frame is ignored."""
    start = 0
    while start + _LENGTH + _DIGEST <= len(journal):
        begin = start + _LENGTH + _DIGEST
        end = begin + int.from_bytes(journal[start : start + _LENGTH], "little")
        if end > len(journal):
            return
        content = journal[begin:end]
        if hashlib.sha256(content).digest() != journal[start + _LENGTH : begin]:
            if end == len(journal) or not any(journal[start:]):  # zeros that a power cut left
                return
            raise ModelFileError(f"The journal {source} is damaged at byte {start}. {_ADVICE}")
        yield content, end
        start = end


_ADVICE = "Restore it from a copy; without it the model is what it was before the changes in it."


def _header(content: bytes, source: Path) -> dict[str, Any]:
    try:
        length = int.from_bytes(content[:_LENGTH], "little")
        header: dict[str, Any] = json.loads(json.loads(content[_LENGTH : _LENGTH + length])["__metadata__"][_KEY])
        if type(header["version"]) is not int:
            raise TypeError("a version that is no number")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"The journal {source} has a malformed frame: {error!r}. {_ADVICE}") from None
    return header


def _applied(state: State, header: dict[str, Any], content: bytes, source: Path) -> State:
    try:
        when, action, what, before, after = header["entry"]
        if header["version"] != state.version + 1 or before != state.hash:
            raise ValueError(f"it goes on from another model, {before}, than {state.hash}")
        if action == "undo":
            following, _ = changes.undo(state, when=when)
        else:
            classes = _classes(state, header, content)
            moved = state.with_classes(classes, memo=header["memo"])
            following = state.with_entry(moved, classes, action=action, what=what, when=when)
        if following.hash != after:
            raise ValueError(f"it leads to {following.hash} instead of {after}")
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, SafetensorError, HyCalError) as error:
        raise ModelFileError(f"The journal {source} does not fit its model: {error}. {_ADVICE}") from None
    return following


def _classes(state: State, header: dict[str, Any], content: bytes) -> dict[Any, Any]:
    tensors = tensors_of(content)
    known = _pool(state, [label for label, _ in header["shelves"]])
    pool = Pool(known.examples + unpack_examples(list(tensors["rows"]), tensors), known.texts + list(tensors["texts"]))
    return {label: None if plain is None else pool.decode_class(plain) for label, plain in header["shelves"]}


def _pool(state: State, labels: Sequence[Label]) -> Pool:
    """Return the examples and texts of the classes at `labels` before the change, in their order."""
    classes = [state.classes[label] for label in labels if label in state.classes]
    texts = [class_.text for class_ in classes if class_.text is not None]
    return Pool([example for class_ in classes for example in class_.examples], texts)
