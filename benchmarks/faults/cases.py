"""The operations that write, each on a model large enough to take its time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.faults.kills import Case
from hycal.cli import app
from hycal.embedding import EmbeddingCache
from hycal.project import Arrival, Example, Project, Space, empty_state

CLASSES, SHOTS, WIDTH = 60, 8, 256
SPACE = Space("synthetic", "synthetic-space", WIDTH)
ABSENT = "absent"


def image(number: int) -> Example:
    """Image `number`: the same one at every call."""
    row = np.random.default_rng(number).normal(size=WIDTH)
    unit = (row / np.linalg.norm(row)).astype(np.float32)
    key = hashlib.sha256(str(number).encode()).digest()
    return Example(unit, key, f"{number}.png", key * 40)


def arrivals(classes: Sequence[int]) -> list[Arrival]:
    """All the images of some classes."""
    return [Arrival(f"things/{label}", image(label * SHOTS + shot)) for label in classes for shot in range(SHOTS)]


def model(folder: Path, name: str = "model.hycal", *, journal: bool = False) -> Project:
    """Open the project of a case."""
    return Project(folder / name, empty_state(SPACE, has_text=False), journal=journal)


def learned(folder: Path) -> None:
    """Make the model that most cases begin with."""
    model(folder).learn(arrivals(range(CLASSES)))


def look_at_model(folder: Path, name: str = "model.hycal") -> str:
    """Return a hash of everything in a project but the times of its changes."""
    if not (folder / name).exists():
        return ABSENT
    state = Project(folder / name).state
    entries = [[e.action, e.what, e.before, e.after, e.undo is not None] for e in state.history]
    if entries and entries[-1][3] != state.hash:
        raise ValueError("the model is not the one that its history ends with")
    digest = hashlib.sha256(json.dumps([state.hash, entries]).encode())
    for example in state.examples:
        digest.update(example.row.tobytes() + example.identity + example.name.encode() + example.thumbnail)
    return digest.hexdigest()


def _prepare_nothing(folder: Path) -> None:
    pass


def _learn(folder: Path) -> None:
    model(folder).learn(arrivals(range(CLASSES // 2, CLASSES + 20)))


def _forget(folder: Path) -> None:
    app(["forget", str(folder / "model.hycal"), "things/7"], standalone_mode=False)


def _prepare_two(folder: Path) -> None:
    learned(folder)
    model(folder, "other.hycal").learn(arrivals(range(CLASSES - 10, CLASSES + 30)))


def _merge(folder: Path) -> None:
    model(folder).merge(model(folder, "other.hycal").state)


def _merge_into_new(folder: Path) -> None:
    inputs = [str(folder / name) for name in ("model.hycal", "other.hycal")]
    app(["merge", *inputs, "--out", str(folder / "both.hycal")], standalone_mode=False)


def _look_at_merged(folder: Path) -> str:
    return f"{look_at_model(folder)} {look_at_model(folder, 'both.hycal')}"


def _correct(folder: Path) -> None:
    model(folder, journal=True).correct(image(100), "things/9")


def _prepare_journal(folder: Path) -> None:
    learned(folder)
    project = model(folder, journal=True)
    for number in range(3):
        project.correct(image(number), "things/9")


def _close(folder: Path) -> None:
    model(folder, journal=True).close()


_KEYS = [hashlib.sha256(f"row {number}".encode()).digest() for number in range(600)]
_ROWS = np.random.default_rng(0).normal(size=(600, WIDTH)).astype(np.float32)


def _cache(folder: Path) -> EmbeddingCache:
    return EmbeddingCache(folder / "cache", fingerprint="synthetic", dimension=WIDTH)


def _prepare_cache(folder: Path) -> None:
    with _cache(folder) as cache:
        cache.add(_KEYS[:300], _ROWS[:300])


def _add_to_cache(folder: Path) -> None:
    with _cache(folder) as cache:
        cache.add(_KEYS[300:], _ROWS[300:])


def _look_at_cache(folder: Path) -> str:
    with _cache(folder) as cache:
        known = sorted(cache.known())
        return hashlib.sha256(b"".join(known) + cache.get(known).tobytes()).hexdigest()


_NEW = [image(10_000 + number) for number in range(3)]  # they come with the journal
_FORGOTTEN = [*(image(9 * SHOTS + shot) for shot in range(SHOTS)), *_NEW]


def _prepare_forgetting(folder: Path) -> None:
    learned(folder)
    project = model(folder, journal=True)
    for example in _NEW:
        project.correct(example, "things/9")
    everything = [image(number) for number in range(CLASSES * SHOTS)] + _NEW
    with _cache(folder) as cache:
        for start in range(0, len(everything), 100):
            part = everything[start : start + 100]
            cache.add([example.key for example in part], np.stack([example.row for example in part]))


def _forget_for_good(folder: Path) -> None:
    command = ["forget", str(folder / "model.hycal"), "things/9", "--for-good", "--cache", str(folder / "cache")]
    app(command, standalone_mode=False)


def _look_at_the_others(folder: Path) -> str:
    """Return a hash of the model, and of what the cache holds of the images that are not forgotten."""
    with _cache(folder) as cache:
        kept = sorted(cache.known() - {example.key for example in _FORGOTTEN})
        rows = cache.get(kept).tobytes()
    return hashlib.sha256(look_at_model(folder).encode() + b"".join(kept) + rows).hexdigest()


def _left_of_the_forgotten(folder: Path) -> str:
    files = [path for path in folder.rglob("*") if path.is_file()]
    content = {path.relative_to(folder): path.read_bytes() for path in files}
    found = sorted(
        {
            str(path)
            for path, bytes_ in content.items()
            for example in _FORGOTTEN
            if example.row.tobytes() in bytes_ or example.thumbnail in bytes_
        }
    )
    return f"embeddings or thumbnails are left in {found}" if found else ""


CASES = (
    Case("first learn", _prepare_nothing, _learn, look_at_model),
    Case("learn", learned, _learn, look_at_model),
    Case("hycal forget", learned, _forget, look_at_model),
    Case("merge", _prepare_two, _merge, look_at_model),
    Case("hycal merge --out", _prepare_two, _merge_into_new, _look_at_merged),
    Case("correction in the journal", _prepare_journal, _correct, look_at_model),
    Case("journal into the file", _prepare_journal, _close, look_at_model),
    Case("cache write", _prepare_cache, _add_to_cache, _look_at_cache),
    Case("hycal forget --for-good", _prepare_forgetting, _forget_for_good, _look_at_the_others, _left_of_the_forgotten),
)
