"""Sound inputs, small: where a fuzzer starts from."""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.parquet
from PIL import Image
from PIL import features as image_formats
from safetensors.numpy import load, save_file

from hycal.embedding.decoding import FORMATS
from hycal.embedding.table import EmbeddingTable, write_table
from hycal.project import Arrival, Example, Project, Space, empty_state
from hycal.project.changes import correct, rename
from hycal.project.journal import change_of
from hycal.project.labels import find
from hycal.project.reversals import undo
from hycal.project.sealed import seal

WIDTH = 3
_ROWS = np.eye(WIDTH, dtype=np.float32)


@cache
def _made(make: Callable[[Path], None]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "made.npz")
        make(path)
        return path.read_bytes()


def _write_model(path: Path) -> None:
    project = Project(path, empty_state(Space("tiny", "tiny-space", WIDTH), has_text=True))
    texts = {"pets/cat": _ROWS[1], "pets/dog": _ROWS[2]}
    images = [Example(row, bytes([number]) * 32, f"{number}.png", b"x") for number, row in enumerate(_ROWS)]
    project.learn([Arrival("pets/cat", images[0]), Arrival("pets/dog", images[1])], texts)
    project.correct(images[2], "pets/dog")
    project.forget("pets/cat")


def _write_sealed(path: Path) -> None:
    """Two views, and a class that lacks the second."""
    space = Space("tiny+tiny", "one+two", 2 * WIDTH, (WIDTH, WIDTH))
    rows = np.hstack([_ROWS, _ROWS[::-1]])
    rows[2, WIDTH:] = 0.0
    images = [Example(row, bytes([number]) * 32, f"{number}.png", b"x") for number, row in enumerate(rows)]
    opened = Project(path.with_name("opened.hycal"), empty_state(space, has_text=False))
    labels = ("pets/cat", "pets/dog", "birds/owl")
    opened.learn([Arrival(label, image) for label, image in zip(labels, images, strict=True)])
    Project.create(path, seal(opened.state))


def _features_npz(path: Path) -> None:
    np.savez(path, features=np.eye(6, WIDTH) + 0.1, labels=_LABELS, split=["train"] * 4 + ["test"] * 2)


def _features_parquet(path: Path) -> None:
    pyarrow.parquet.write_table(_feature_table(), path)


def _features_arrow(path: Path) -> None:
    with pyarrow.ipc.new_stream(path, _feature_table().schema) as file:
        file.write_table(_feature_table())


def _features_safetensors(path: Path) -> None:
    numbers = np.arange(6) % 2
    save_file({"features": np.eye(6, WIDTH, dtype=np.float32) + 0.1, "labels": numbers}, path)


_LABELS = ["owl", "tit"] * 3
#: Writers of features by suffix.
FEATURES: dict[str, Callable[[Path], None]] = {
    ".npz": _features_npz,
    ".parquet": _features_parquet,
    ".arrow": _features_arrow,
    ".safetensors": _features_safetensors,
}


def _feature_table() -> pyarrow.Table:
    rows = (np.eye(6, WIDTH) + 0.1).tolist()
    return pyarrow.table({"embedding": rows, "label": _LABELS, "split": ["train"] * 4 + ["test"] * 2})


def features(suffix: str) -> list[bytes]:
    """Files of features."""
    return [_made(FEATURES[suffix])]


def model() -> bytes:
    """A project with a history that can be undone."""
    return _made(_write_model)


def sealed() -> bytes:
    """A sealed project of two views."""
    return _made(_write_sealed)


def models() -> list[bytes]:
    """Model files."""
    return [model(), sealed()]


@cache
def parts_of(make: Callable[[], bytes]) -> tuple[str, dict[str, npt.NDArray[Any]]]:
    """The manifest of the model that `make` returns, as text, and its tensors."""
    content = make()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    tensors = load(content)
    del tensors["checksums"]
    return header["__metadata__"]["hycal"], tensors


def manifests(make: Callable[[], bytes]) -> list[bytes]:
    """Manifests of a model."""
    return [parts_of(make)[0].encode()]


def sealed_numbers() -> list[bytes]:
    """The numbers of the sealed model, one tensor after the other."""
    return [b"".join(tensor.tobytes() for tensor in parts_of(sealed)[1].values())]


@cache
def journal_frames() -> list[bytes]:
    """What is in the frames that lead on from the model above."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.hycal")
        path.write_bytes(model())
        before = Project(path).state
    example = Example(_ROWS[0], b"k" * 32, "a.png", b"thumbnail")
    following = [
        correct(before, example, "pets/cow", {"pets/cow": _ROWS[1]})[0],
        rename(before, find(before, "pets/dog"), "wolf")[0],
        undo(before)[0],
    ]
    return [change_of(before, after) for after in following]


def csv_lists() -> list[bytes]:
    """CSV manifests."""
    return [b"file,label,split,domain\na.png,cat,train,pets\nb/c.png,dog,test,pets\n", b"file,label\na.png,cat\n"]


def jsonl_lists() -> list[bytes]:
    """JSONL manifests."""
    return [b'{"file": "a.png", "label": "cat", "split": "train", "domain": "pets"}\n{"file": "b.png", "label": 7}\n']


def _arrays(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def npz_lists() -> list[bytes]:
    """Arrays of images."""
    images = np.zeros((2, 4, 4), np.uint8)
    return [
        _arrays(images=images, labels=np.array(["cat", "dog"])),
        _arrays(train_images=images, train_labels=np.array([0, 1]), class_names=np.array(["cat", "dog"])),
    ]


def _write_table(path: Path) -> None:
    names = np.array(["a", "b", "c"])
    write_table(path, EmbeddingTable(_ROWS, names, names, names, names, "tiny", "tiny-space"))


def tables() -> list[bytes]:
    """Tables of embeddings."""
    return [_made(_write_table)]


def images() -> list[bytes]:
    """One small image of each format and mode that we decode."""
    ramp = np.add.outer(np.arange(12), np.arange(16)).astype(np.uint8) * 9
    picture = Image.fromarray(ramp).convert("RGB")
    formats = [name for name in FORMATS if name != "WEBP" or image_formats.check("webp")]
    found = [_image_file(picture, name) for name in formats]
    return [*found, *(_image_file(picture.convert(mode), "PNG") for mode in ("L", "P", "RGBA", "1", "I;16"))]


def _image_file(picture: Image.Image, name: str) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, name)
    return buffer.getvalue()


def zips() -> list[bytes]:
    """Archives of two files, in each compression."""
    found = []
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", compression) as file:
            file.writestr("folder/a.txt", "hello " * 9)
            file.writestr("b.txt", "")
        found.append(buffer.getvalue())
    return found


def tars() -> list[bytes]:
    """Archives of two files, in each compression and header format."""
    modes, forms = ("w:", "w:gz", "w:bz2", "w:xz"), (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT)
    return [_tar(mode, form) for mode in modes for form in forms]


def _tar(mode: Any, form: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode, format=form) as file:
        for name in ("folder/a.txt", "é" * 60 + ".txt"):
            info = tarfile.TarInfo(name)
            info.size = 5
            file.addfile(info, io.BytesIO(b"hello"))
    return buffer.getvalue()


def npys() -> list[bytes]:
    """Rows as numpy saves them."""
    buffer = io.BytesIO()
    np.save(buffer, _ROWS)
    return [buffer.getvalue()]


def json_rows() -> list[bytes]:
    """Rows as JSON."""
    return [json.dumps({"rows": _ROWS.tolist()}).encode()]
