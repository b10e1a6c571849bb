"""The journal of a project: changes that are not in its file yet. To append one costs little, however large the model.

A frame is a head, its content, and an end. The content is a safetensors file with what changed between one version of
the project and the next. The head is a mark, the length of the content, and a checksum of both; the end is the SHA-256
of head and content, and a mark. So a frame that was cut off, which never counted, differs from one that was damaged,
which is an error. Replay ignores frames already in the model file: a journal that was not removed in time does no harm.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load as tensors_of
from safetensors.numpy import save as bytes_of

from hycal.errors import HyCalError, ModelFileError, storing
from hycal.project import reversals
from hycal.project.examples import ClassExamples
from hycal.project.file import Pool, pack_provenance, stack_rows, unpack_examples
from hycal.project.state import State
from hycal.storage.model_file import parse_json, unit_matrix
from hycal.validation import Label, check_one_kind

_MARK, _END = b"hycal-j2", b"\n"
_LENGTH, _CHECK, _DIGEST = 8, 8, 32
_HEAD = len(_MARK) + _LENGTH + _CHECK
_FIRST_HEAD = _LENGTH + _DIGEST  # of frames of version 1: length and SHA-256 of the content
_MOST_BYTES = 2**28  # of a journal: far more than one that a project writes
_MOST_FIRST = 2**40  # bytes of a frame of version 1: no damaged mark is read as a length
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
    return framed(change_of(before, following))


def change_of(before: State, following: State) -> bytes:
    """Return the content of a frame: what changed from one state to the next version."""
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
    return bytes_of(tensors, {_KEY: json.dumps(header, ensure_ascii=False)})


def framed(content: bytes) -> bytes:
    """Return the frame of this content."""
    frame = _head(len(content)) + content
    return frame + hashlib.sha256(frame).digest() + _END


def _head(length: int) -> bytes:
    head = _MARK + length.to_bytes(_LENGTH, "little")
    return head + hashlib.sha256(head).digest()[:_CHECK]


def replay(state: State, journal: bytes, *, source: Path) -> Replayed:
    """Return the state after every frame that is newer than `state`."""
    frames = used = 0
    for content, end in _frames(journal, source):
        header = _header(content, source)
        if header["version"] <= state.version:
            _check_known(state, header, source)
            continue
        state = _applied(state, header, content, source)
        frames, used = frames + 1, end
    return Replayed(state, frames, used)


def read_journal(path: Path) -> bytes:
    """Return the content of a journal; nothing if there is none.

    A link, a pipe or a device in its place is refused: nobody named what it leads to, and it may have no end.
    """
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            raise ModelFileError(f"{path} is no file that can be the journal of a model. {_ADVICE.format(path)}")
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def append(path: Path, frame: bytes, *, used: int) -> None:
    """Write a frame after the first `used` bytes, and sync it to the disk; a link is not followed."""
    with storing(path), open(path, "ab", buffering=0, opener=_open_itself) as file:
        file.truncate(used)
        try:
            rest = memoryview(frame)
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(used)  # a failed change must not be replayed later
            raise


def _open_itself(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _frames(journal: bytes, source: Path) -> Iterator[tuple[bytes, int]]:
    """Yield the content and the end of every frame; a last frame that was not written to its end is ignored."""
    start, written = 0, len(journal.rstrip(b"\0"))  # zeros at the end are room that a power cut left
    while start < written:
        found = _frame_at(journal, start, written)
        if found is None:
            return
        content, end, sound = found
        if not sound:
            raise ModelFileError(f"The journal {source} is damaged at byte {start}. {_ADVICE.format(source)}")
        yield content, end
        start = end


def _frame_at(journal: bytes, start: int, written: int) -> tuple[bytes, int, bool] | None:
    """Return the content of the frame at `start`, its end, and whether it is sound; None if it was cut off.

    A frame was cut off if it is longer than what was written: the file, without zeros at its end.
    """
    head = journal[start : start + _HEAD]
    length = int.from_bytes(head[len(_MARK) : len(_MARK) + _LENGTH], "little")
    if not head.startswith(_MARK) and int.from_bytes(head[:_LENGTH], "little") < _MOST_FIRST:
        return _first_frame_at(journal, start)
    if written < start + _HEAD:
        return None
    if head != _head(length):
        return b"", start, False
    begin, end = start + _HEAD, start + _HEAD + length + _DIGEST + len(_END)
    if written < end:
        return None
    content, seal = journal[begin : begin + length], journal[begin + length : end]
    return content, end, seal == hashlib.sha256(head + content).digest() + _END


def _first_frame_at(journal: bytes, start: int) -> tuple[bytes, int, bool] | None:
    """Return the same of a frame of version 1, which cannot tell damage at the end from a frame that was cut off."""
    begin = start + _FIRST_HEAD
    end = begin + int.from_bytes(journal[start : start + _LENGTH], "little")
    content, digest = journal[begin:end], journal[start + _LENGTH : begin]
    sound = hashlib.sha256(content).digest() == digest
    return None if end > len(journal) or (end == len(journal) and not sound) else (content, end, sound)


_ADVICE = (
    "If the model beside it was restored from a copy, or put there, the journal belongs to another one: move {0} away, "
    "and open the model again; it then lacks the changes in the journal. Else restore both from one copy."
)


def _header(content: bytes, source: Path) -> dict[str, Any]:
    try:
        length = int.from_bytes(content[:_LENGTH], "little")
        header: dict[str, Any] = parse_json(parse_json(content[_LENGTH : _LENGTH + length])["__metadata__"][_KEY])
        if type(header["version"]) is not int or [type(field) for field in header["entry"]] != [str] * 5:
            raise TypeError("a version that is not a number, or an entry that is not text")
        if not isinstance(header["memo"], dict):
            raise TypeError("a memo that is not an object")
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"The journal {source} has a malformed frame: {error!r}. {_ADVICE.format(source)}"
        ) from None
    return header


def _check_known(state: State, header: dict[str, Any], source: Path) -> None:
    """Refuse a frame that seems to be in the model already, and is not in its history."""
    entries = [entry for entry in state.history if entry.number == header["version"]]
    if any([entry.before, entry.after] != header["entry"][-2:] for entry in entries):
        raise ModelFileError(
            f"The journal {source} does not fit its model: change {header['version']} in it is another one than in the "
            f"history of the model. {_ADVICE.format(source)}"
        )


def _applied(state: State, header: dict[str, Any], content: bytes, source: Path) -> State:
    try:
        when, action, what, before, after = header["entry"]
        if header["version"] != state.version + 1 or before != state.hash:
            raise ValueError(f"it goes on from another model, {before}, than {state.hash}")
        if action == "undo":
            following, _ = reversals.undo(state, when=when)
        else:
            classes = _classes(state, header, content)
            check_one_kind([*state.classes, *classes])
            moved = state.with_classes(classes, memo=header["memo"])
            following = state.with_entry(moved, classes, action=action, what=what, when=when)
        if following.hash != after:
            raise ValueError(f"it leads to {following.hash} instead of {after}")
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, SafetensorError, HyCalError) as error:
        raise ModelFileError(
            f"The journal {source} does not fit its model: {error}. {_ADVICE.format(source)}"
        ) from None
    return following


def _classes(state: State, header: dict[str, Any], content: bytes) -> dict[Label, ClassExamples | None]:
    tensors, width = tensors_of(content), state.space.dimension
    rows, texts = (
        unit_matrix(tensors[name], name, width=width, views=state.classifier.views) for name in ("rows", "texts")
    )
    known = _pool(state, [label for label, _ in header["shelves"]])
    pool = Pool(known.examples + unpack_examples(list(rows), tensors), known.texts + list(texts))
    return pool.decode_classes(header["shelves"])


def _pool(state: State, labels: Sequence[Label]) -> Pool:
    """Return the examples and texts of the classes at `labels` before the change, in their order."""
    classes = [state.classes[label] for label in labels if label in state.classes]
    texts = [class_.text for class_ in classes if class_.text is not None]
    return Pool([example for class_ in classes for example in class_.examples], texts)
