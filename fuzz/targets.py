"""Every reader of untrusted input, as a function of bytes that must succeed or raise a HyCalError."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from fuzz import seeds
from hycal.data.archives import unpack
from hycal.data.features import load_features
from hycal.data.readers import list_images
from hycal.embedding.decoding import decode
from hycal.embedding.table import read_table
from hycal.errors import HyCalError
from hycal.project import Project
from hycal.project.file import project_content
from hycal.project.journal import framed, journal_of
from hycal.project.reversals import undo
from hycal.serve.embeddings import rows_of
from hycal.serve.requests import NPY
from hycal.storage import model_file

MOST_PIXELS = 4_000_000
IMAGES_TO_READ = 3


@dataclass(frozen=True)
class Target:
    """One way in.

    Attributes
    ----------
    name : str
    feed : callable
        Hand it the bytes; a HyCalError is an answer like any other, everything else is a bug.
    seeds : callable
        Returns sound inputs to start from.
    """

    name: str
    feed: Callable[[bytes], None]
    seeds: Callable[[], Sequence[bytes]]

    def try_(self, content: bytes) -> bool:
        """Return whether the input was accepted; raise whatever is no HyCalError."""
        try:
            self.feed(content)
        except HyCalError:
            return False
        return True


@cache
def room() -> Path:
    """Return a folder in memory, where there is such a thing."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="hycal-fuzz-", dir=memory if memory.is_dir() else None))


def _placed(name: str, content: bytes) -> Path:
    path = room() / name
    path.write_bytes(content)
    return path


def _use(path: Path) -> None:
    """Open a project, ask it, see that what it would write is what it read, and take its changes back."""
    state = Project(path).state
    if state.labels:
        row = np.eye(1, state.space.dimension, dtype=np.float32)
        state.classifier.decision_function(row)
    again = path.with_name("again.hycal")
    model_file.write(again, project_content(state))
    if Project(again).state.hash != state.hash:
        raise AssertionError("a project that was read and written is another one")
    while any(entry.undoable for entry in state.history):
        state, _ = undo(state)
        model_file.write(again, project_content(state))
        Project(again)


def _model(content: bytes) -> None:
    _use(_placed("model.hycal", content))


def _manifest(make: Callable[[], bytes]) -> Callable[[bytes], None]:
    """A sound body under a hostile manifest."""

    def feed(content: bytes) -> None:
        _, tensors = seeds.parts_of(make)
        path = room() / "model.hycal"
        model_file.write_parts(path, content.decode("utf-8", "replace"), tensors)
        _use(path)

    return feed


def _sealed_numbers(content: bytes) -> None:
    """Hostile numbers under a sound manifest and sound checksums; what the content lacks stays as it was."""
    manifest, tensors = seeds.parts_of(seeds.sealed)
    hostile, start = {}, 0
    for name, tensor in tensors.items():
        given = content[start : start + tensor.nbytes]
        hostile[name] = np.frombuffer(given + tensor.tobytes()[len(given) :], tensor.dtype).reshape(tensor.shape)
        start += tensor.nbytes
    path = room() / "model.hycal"
    model_file.write_parts(path, manifest, hostile)
    _use(path)


def _journal(content: bytes) -> None:
    """A frame whose hash is right, beside a sound model: what a program that is not ours may have written."""
    path = _placed("journalled.hycal", seeds.model())
    journal_of(path).write_bytes(framed(content))
    _use(path)


def _list(name: str) -> Callable[[bytes], None]:
    def feed(content: bytes) -> None:
        for image in list_images(_placed(name, content))[:IMAGES_TO_READ]:
            with suppress(HyCalError):  # each image on its own: one that cannot be read does not stop the others
                image.source.read()
            json.dumps([image.file, image.label, image.domain, image.split]).encode()

    return feed


def _table(content: bytes) -> None:
    read_table(_placed("table.npz", content))


def _features(suffix: str) -> Callable[[bytes], None]:
    def feed(content: bytes) -> None:
        for domain in load_features(_placed(f"domain{suffix}", content)).values():
            if not np.allclose(np.linalg.norm(domain.train_x, axis=1), 1, atol=1e-3):
                raise AssertionError("rows of another length came out")

    return feed


def _image(content: bytes) -> None:
    picture = decode(content, most_pixels=MOST_PIXELS)
    if picture.mode != "RGB" or picture.width * picture.height > MOST_PIXELS:
        raise AssertionError(f"{picture.mode} of {picture.size} came out")


def _archive(name: str) -> Callable[[bytes], None]:
    def feed(content: bytes) -> None:
        box = room() / "box"
        shutil.rmtree(box, ignore_errors=True)
        inside = box / "inside"
        try:
            unpack(_placed(name, content), inside)
        finally:
            if [path.name for path in box.iterdir()] != ["inside"]:
                raise AssertionError("a file outside the folder")
            if any(path.is_symlink() or not (path.is_file() or path.is_dir()) for path in inside.rglob("*")):
                raise AssertionError("something that is neither a file nor a folder")

    return feed


def _rows(kind: str) -> Callable[[bytes], None]:
    def feed(content: bytes) -> None:
        rows = rows_of(content, kind, most=64)
        if rows.dtype != np.float32 or rows.ndim != 2 or not 0 < len(rows) <= 64:
            raise AssertionError(f"{rows.dtype} of shape {rows.shape} came out")

    return feed


TARGETS = {
    target.name: target
    for target in (
        Target("model", _model, seeds.models),
        Target("manifest", _manifest(seeds.model), partial(seeds.manifests, seeds.model)),
        Target("sealed-manifest", _manifest(seeds.sealed), partial(seeds.manifests, seeds.sealed)),
        Target("sealed-numbers", _sealed_numbers, seeds.sealed_numbers),
        Target("journal", _journal, seeds.journal_frames),
        Target("csv", _list("list.csv"), seeds.csv_lists),
        Target("jsonl", _list("list.jsonl"), seeds.jsonl_lists),
        Target("npz", _list("list.npz"), seeds.npz_lists),
        Target("table", _table, seeds.tables),
        *(Target(f"features{suffix}", _features(suffix), partial(seeds.features, suffix)) for suffix in seeds.FEATURES),
        Target("image", _image, seeds.images),
        Target("zip", _archive("archive.zip"), seeds.zips),
        Target("tar", _archive("archive.tar"), seeds.tars),
        Target("npy", _rows(NPY), seeds.npys),
        Target("rows", _rows("application/json"), seeds.json_rows),
    )
}
