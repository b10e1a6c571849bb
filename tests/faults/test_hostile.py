"""Hostile bytes and names. `make fuzz` looks for more with the same targets, guided by coverage."""

from __future__ import annotations

import gzip
import io
import os
import random
import struct
import tarfile
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fuzz import seeds
from fuzz.mutations import mutations
from fuzz.targets import TARGETS, Target
from hycal import HyCalError
from hycal.cli import app
from hycal.data.archives import unpack
from hycal.data.readers import list_images, read_npz
from tests.support.images import picture

MUTATIONS = 60


@pytest.fixture(autouse=True)
def _pillow_may_warn() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_damaged_input_is_used_or_refused(target: Target) -> None:
    accepted = [target.try_(content) for content in target.seeds()]
    assert all(accepted), "the fuzzer starts from sound inputs"
    damaged = [target.try_(content) for content in mutations(target.seeds(), MUTATIONS, random.Random(0))]
    assert not all(damaged)


def zip_with_a_nameless_member() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("a", "")
    content = bytearray(buffer.getvalue())
    entry = content.index(b"PK\x01\x02")
    content[entry + 28 : entry + 34] = struct.pack("<HHH", 0, 0, 1)  # the name becomes the comment
    return bytes(content)


def tar_with_a_header_of(size: int) -> bytes:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, size
    return info.tobuf(tarfile.GNU_FORMAT) + bytes(1024)


def npy(header: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


def newer(zipped: bytes) -> bytes:
    """The same zip, said to need a version of the format that does not exist yet."""
    entry = zipped.index(b"PK\x01\x02")
    return zipped[: entry + 6] + b"\xff" + zipped[entry + 7 :]


def npy_of(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def zip_of(**arrays: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in arrays.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


TOO_MANY = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 3)}" % 10**20
FOUND = {  # by fuzzing, each at first an error of Python's or of a library's own
    "half a surrogate pair": ("manifest", lambda: seeds.manifests(seeds.model)[0].replace(b'"tiny"', b'"\\ud800"')),
    "frame with more than its tensors": ("journal", lambda: seeds.journal_frames()[0] + b"x"),
    "frame nested too deep": ("journal", lambda: (10**5).to_bytes(8, "little") + b"[" * 10**5),
    "frame that is a list": ("journal", lambda: (2).to_bytes(8, "little") + b"[]"),
    "file called NUL": ("csv", lambda: b"file,label\n\0,cat\n"),
    "file called half a surrogate pair": ("jsonl", lambda: b'{"file": "\\ud800", "label": "cat"}'),
    "line nested too deep": ("jsonl", lambda: b"[" * 10**5),
    "zip of a version to come": ("table", lambda: newer(seeds.tables()[0])),
    "member that is no array": ("npz", lambda: zip_of(images=npy_of(np.zeros((1, 4, 4), np.uint8)), labels=b"")),
    "text of characters that do not exist": (
        "npz",
        lambda: zip_of(images=npy_of(np.zeros((1, 4, 4), np.uint8)), labels=npy_of(np.array(["a"]))[:-1] + b"\xff"),
    ),
    "broken LZMA": ("zip", lambda: seeds.zips()[3][:50] + b"\xff" * 8 + seeds.zips()[3][58:]),
    "member without a name": ("zip", zip_with_a_nameless_member),
    "header longer than any memory": ("tar", lambda: tar_with_a_header_of(2**70)),
    "more rows than can be counted": (
        "npy",
        lambda: npy(TOO_MANY),
    ),
    "header that does not end": ("npy", lambda: npy(b"{'descr': (")),
}


@pytest.mark.parametrize(("target", "content"), FOUND.values(), ids=FOUND)
def test_what_fuzzing_found(target: str, content: Callable[[], bytes]) -> None:
    used = TARGETS[target].try_(content())
    assert used == (content() in USED), "a list with an image that cannot be read is used without it"


USED = (b"file,label\n\0,cat\n", b'{"file": "\\ud800", "label": "cat"}')


def peak_megabytes(refused: Callable[[], object]) -> float:
    tracemalloc.start()
    try:
        with pytest.raises(HyCalError):
            refused()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def test_a_header_that_would_fill_the_memory_is_not_read(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "x.tar.gz", "wb", compresslevel=1) as file:
        file.write(tar_with_a_header_of(2**27)[:512])
        for _ in range(128):
            file.write(bytes(2**20))
    assert peak_megabytes(lambda: unpack(tmp_path / "x.tar.gz", tmp_path / "out")) < 8


def test_arrays_that_would_fill_the_memory_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hycal.storage.npz.MOST_BYTES", 2**20)
    np.savez_compressed(tmp_path / "x.npz", images=np.zeros((64, 1024, 1024), np.uint8), labels=np.zeros(64, int))
    assert (tmp_path / "x.npz").stat().st_size < 2**17
    assert peak_megabytes(lambda: read_npz(tmp_path / "x.npz")) < 1


NAMES = (
    b"plain",
    b"\x1b[31mred\x1b]0;title\x07",
    "\u202egnp".encode(),
    b"new\nline",
    b"[bold]",
    "é漢".encode(),
    b"-rf",
)


def hostile_folder(root: Path) -> Path:
    for number, name in enumerate(NAMES):
        folder = Path(os.fsdecode(os.fsencode(root) + b"/" + name))
        folder.mkdir(parents=True)
        for image in range(2):
            picture(10 * number + image).save(folder / f"{folder.name}{image}.png", "PNG")
    Path(os.fsdecode(os.fsencode(root) + b"/plain/no\xe9image\x1b[2J.png")).write_bytes(b"no image")
    (root / "loop").symlink_to(root)
    (root / "plain" / "gone.png").symlink_to("nowhere")
    os.mkfifo(root / "plain" / "pipe.png")
    return root


def test_no_name_reaches_the_terminal_as_a_command(tmp_path: Path) -> None:
    folder, model = str(hostile_folder(tmp_path / "data")), str(tmp_path / "m.hycal")
    red = os.fsdecode(b"data/" + NAMES[1])
    for command in (
        ["learn", model, folder],
        ["learn", model, folder],
        ["classes", model],
        ["predict", model, folder],
        ["predict", model, folder, "--json"],
        ["advise", model],
        ["rename", model, red, red + "2"],
        ["forget", model, red],
        ["forget", model, red + "3"],
        ["undo", model],
        ["info", model],
        ["evaluate", model, folder],
        ["learn", model, folder + "\x1b]0;title\x07"],
    ):
        result = CliRunner().invoke(app, command)
        assert result.exit_code in (0, 1), (command, result.output)
        assert result.exception is None or isinstance(result.exception, SystemExit), (command, result.exception)
        told = result.output
        assert not set(told) & {"\x1b", "\x07", "\u202e"}, (command, told)
    assert len(list_images(folder)) == 2 * len(NAMES) + 4, "the loop is listed, not followed; so is what is no image"


def test_thousands_of_files_in_one_folder(tmp_path: Path) -> None:
    """`python -m benchmarks.folder_listing` measures 100,000."""
    for number in range(1000):
        (tmp_path / f"{number}.png").touch()
    found = list_images(tmp_path)
    assert [image.file for image in found] == sorted(f"{number}.png" for number in range(1000))
