"""Attacks through what commands print and write, and through the names and manifests that they read."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

from benchmarks.attacks.case import Case
from benchmarks.faults.cases import arrivals, model
from hycal import HyCal
from hycal.export.onnx_head import onnx_head
from hycal.project import Project
from hycal.testing.streams import Stream, learn

Result = tuple[bool, str]
_COMMAND = "from hycal.cli import app; app()"
_FULL = f"""
import errno, os, sys
def refuse(event, arguments):
    if event in ("open", "os.mkdir") and str(arguments[0]).startswith(os.environ["TMPDIR"]):
        raise OSError(errno.ENOSPC, "No space left on device", arguments[0])
sys.addaudithook(refuse)
{_COMMAND}
"""


def _hycal(folder: Path, *arguments: object, before: str = ":", line: str = "", code: str = _COMMAND) -> int:
    """Run `hycal` in `folder` by a shell, after `before` and with the redirections of `line`; return the exit code."""
    command = [
        "bash",
        "-c",
        f'set -o pipefail; {before}; "$0" -c "$CODE" "$@" {line}',
        sys.executable,
        *map(str, arguments),
    ]
    variables = {**os.environ, "HYCAL_CACHE": str(folder / "cache"), "CODE": code}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True).returncode


def _zoo(folder: Path) -> Path:
    """Write four pictures of each of two classes in two domains, and a model that learned them."""
    rng = np.random.default_rng(0)
    for place in ("art/one", "art/two", "digit/one", "digit/two"):
        (folder / "zoo" / place).mkdir(parents=True)
        for number in range(4):
            pixels = rng.integers(0, 256, (32, 32, 3), np.uint8)
            Image.fromarray(pixels).save(folder / "zoo" / place / f"{number}.png")
    assert _hycal(folder, "learn", "zoo.hycal", "zoo") == 0
    return folder / "zoo" / "art" / "one" / "0.png"


def _csv(folder: Path) -> Result:
    picture = _zoo(folder).read_bytes()
    names = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "a\x1b[31m", "a\x9b31m", "a\u202egnp", "a\u2066b"]
    (folder / "odd").mkdir()
    for name in names:
        (folder / f"{name}.png").write_bytes(picture)
        (folder / "odd" / f"{name}.txt").write_text("no image")
    (folder / "odd" / "a.png").write_bytes(picture)
    images = [f"{name}.png" for name in names]
    answered = _hycal(folder, "predict", "zoo.hycal", "--top", 1, "--csv", "--", *images, line=">answers.csv")
    embedded = _hycal(folder, "embed", ".", "--out", "../odd.npz", before="cd odd")
    lines = (folder / "answers.csv").read_bytes().decode().split("\n")[1:-1]
    lines += (folder / "odd.npz.skipped.csv").read_bytes().decode().split("\r\n")[1:-1]
    raw = sum(line.startswith(("=", "+", "-", "@")) or not line.isprintable() for line in lines)
    held = answered == embedded == 0 and len(lines) == 2 * len(names) and not raw
    return held, f"{raw} of {len(lines)} lines with a hostile name are raw"


def _standard_output(folder: Path) -> Result:
    wrong = tried = 0
    for line in (">/dev/full", ">&-", "| true", ">/dev/full 2>/dev/full"):
        for command in (["rename", "model.hycal", "things/1", "l\xf6we"], ["undo", "model.hycal"]):
            before = model(folder).learn(arrivals(range(3))).after
            project = Project(folder / "model.hycal")
            code = _hycal(folder, *command, line=line)
            wrong += (code == 0) != (project.refresh().hash != before)
            tried += 1
            if command[0] == "rename":
                wrong += _undone_twice(folder, project.state.hash, line)
                tried += 1
            (folder / "model.hycal").unlink()
    return not wrong, f"{wrong} of {tried} exit codes or retried undos are wrong"


def _undone_twice(folder: Path, change: str, line: str) -> bool:
    codes = [_hycal(folder, "undo", "model.hycal", change[:12], line=line) for _ in range(2)]
    return codes != [0, 1] or len(Project(folder / "model.hycal").state.labels) != 3


def _targets(folder: Path) -> Result:
    _zoo(folder)
    wrong = tried = 0
    commands = {".onnx": ["export", "zoo.hycal", "--onnx"], ".html": ["gravity", "zoo.hycal", "zoo", "--html"]}
    for suffix, command in commands.items():
        thesis, odd = folder / f"thesis{suffix}", _no_files(folder, suffix)
        thesis.write_text("three years of work")
        before = [path.lstat().st_ino for path in odd]
        codes = [_hycal(folder, *command, path, *more) for path in odd for more in ([], ["--force"])]
        wrong += sum(code != 1 for code in codes) + ([path.lstat().st_ino for path in odd] != before)
        wrong += _hycal(folder, *command, thesis) != 1 or thesis.read_text() != "three years of work"
        wrong += any(_hycal(folder, *command, folder / f"new{suffix}") for _ in range(2))
        tried += len(codes) + 2
    return not wrong, f"{wrong} of {tried} writes replaced a pipe, a device or another's file, or failed on their own"


def _no_files(folder: Path, suffix: str) -> list[Path]:
    """Make a pipe, a link to it, and where the system allows it a device, all in this folder."""
    pipe, link, device = (folder / f"{name}{suffix}" for name in ("pipe", "link", "device"))
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    with contextlib.suppress(OSError):
        os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        return [pipe, link, device]
    return [pipe, link]


def _forms_of_a_name(folder: Path) -> Result:
    picture = _zoo(folder)
    for number, name in enumerate(("caf\xe9", "cafe\u0301")):
        (folder / "more" / name).mkdir(parents=True)
        Image.open(picture).rotate(90 * number + 90).save(folder / "more" / name / f"{number}.png")
    code = _hycal(folder, "learn", "more.hycal", "more")
    labels = Project(folder / "more.hycal").state.labels
    return code == 0 and len(labels) == 1, f"two spellings of one name are {len(labels)} class"


def _scaled_queries(folder: Path) -> Result:
    stream = Stream.synthetic(5, shots=[[3, 1, 4], [2, 6], [5]], width=64)
    content = onnx_head(learn(HyCal(fusion="image"), stream.steps))
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    rows = np.asarray(stream.queries, np.float32)
    (plain, *_), *others = (session.run(None, {"embeddings": rows * np.float32(s)}) for s in (1, 1e20, 1e-30, 1e37))
    worst = max(float(np.abs(scores - plain).max()) for scores, *_ in others)
    return worst < 1e-4, f"scores of scaled queries differ by {worst:.1g}"


def _manifests(folder: Path) -> Result:
    picture = _zoo(folder)
    (folder / "lists").mkdir()
    read = 0
    for number, file in enumerate(("x/../../zoo/art/one/0.png", str(picture), "../zoo/art/one/0.png")):
        (folder / "lists" / "m.csv").write_text(f"file,label\n{file},cat\n")
        (folder / "lists" / "m.jsonl").write_text(json.dumps({"file": file, "label": "cat"}))
        for name in ("m.csv", "m.jsonl"):
            out = f"{number}-{name}.hycal"
            read += _hycal(folder, "learn", out, f"lists/{name}") != 1 or (folder / out).exists()
    allowed = _hycal(folder, "learn", "allowed.hycal", "lists/m.csv", "--outside")
    return not read and allowed == 0, f"{read} of 6 manifests reached outside their folder without --outside"


def _full_temporary_folder(folder: Path) -> Result:
    (folder / "full").mkdir()
    _zoo(folder)
    commands = {
        "learn": ["new.hycal", "zoo"],
        "predict": ["zoo.hycal", "zoo"],
        "evaluate": ["zoo.hycal", "zoo"],
        "embed": ["zoo", "--out", "zoo.npz"],
        "export": ["zoo.hycal", "--onnx", "zoo.onnx"],
        "merge": ["zoo.hycal", "zoo.hycal", "--out", "both.hycal"],
    }
    os.environ["TMPDIR"] = str(folder / "full")
    try:
        failed = [name for name, more in commands.items() if _hycal(folder, name, *more, code=_FULL)]
    finally:
        del os.environ["TMPDIR"]
    return not failed, f"{len(failed)} of {len(commands)} commands need the temporary folder"


CASES = (
    Case(4, "CSV has no formula, escape sequence or direction mark of a name", _csv),
    Case(10, "exit code 0 if and only if the model changed, whatever becomes of standard output", _standard_output),
    Case(13, "pipes, devices and files of others are not replaced", _targets),
    Case(17, "names are compared in composed form", _forms_of_a_name),
    Case(19, "commands do without the temporary folder", _full_temporary_folder),
    Case(20, "the ONNX head answers scaled queries as it does plain ones", _scaled_queries),
    Case(21, "a manifest names images of its own folder", _manifests),
)
