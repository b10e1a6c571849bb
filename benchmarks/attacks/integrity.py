"""Damaged and crafted files, several writers at once, and what is left after forgetting for good."""

from __future__ import annotations

import gc
import json
import os
import random
import subprocess
import sys
import tracemalloc
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from PIL import Image

from benchmarks.attacks.case import Case
from benchmarks.faults.cases import CASES as WRITERS
from benchmarks.faults.cases import arrivals, image, learned, model
from benchmarks.faults.kills import Prepared
from benchmarks.flips import flip, is_silent, targets
from hycal import HyCal, load
from hycal.errors import HyCalError, ModelFileError, StorageError
from hycal.project import Project, Space, empty_state
from hycal.project.journal import journal_of
from hycal.serve.service import Service
from hycal.storage import model_file

_METHODS = ("HyCal", "NCM", "SLDA", "FeCAM")
_RUN = "from hycal.cli import app; app()"


def _refusal(action: Callable[[], object], kind: type[HyCalError] = HyCalError) -> str | None:
    """Return the message with which an action is refused; None if it is not."""
    try:
        action()
    except kind as error:
        return str(error)
    return None


def _crafted(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> Path:
    """Return a copy of the model at `path` with another manifest and other arrays; its checksums are right."""
    content = model_file.read(path)
    manifest, tensors = json.loads(json.dumps(content.manifest)), dict(content.tensors)
    change(manifest, tensors)
    out = path.with_name("crafted.hycal")
    model_file.write(out, model_file.Content(manifest, tensors))
    return out


def _update(new: dict[str, Any], manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    manifest.update(new)


def too_large(folder: Path) -> tuple[bool, str]:
    """Load small files whose parameters ask for more memory than any machine has."""
    HyCal(fusion="image").fit(np.eye(3, 8), ["a", "b", "c"]).save(folder / "m.hycal")
    asked: list[tuple[str, dict[str, int]]] = [
        ("RanPAC", {"n_components": 10**9}),
        ("KLDA", {"n_components": 1, "ensemble": 10**7}),
    ]
    tracemalloc.start()
    refused = 0
    for method, parameters in asked:
        chosen = {"method": method, "parameters": parameters}
        path = _crafted(folder / "m.hycal", partial(_update, chosen))
        refused += _refusal(partial(load, path), ModelFileError) is not None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return refused == len(asked) and peak < 2**24, f"{refused} of {len(asked)} refused, {peak / 2**20:.1f} MB"


def reversed_classes(folder: Path) -> tuple[bool, str]:
    """Reverse the order of the classes in a file, consistently; `load` and `Project` must refuse it, or be right."""
    learned(folder)

    def reverse(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
        for name in ("labels", "domains"):
            manifest[name].reverse()
        for name in ("samples", "counts", "has_text", "project.keys"):
            tensors[name] = tensors[name][::-1]

    path = _crafted(folder / "model.hycal", reverse)
    told = [_refusal(partial(read, path), ModelFileError) is not None for read in (load, Project)]
    return all(told), f"load and Project refuse it: {told}"


def many_writers(folder: Path) -> tuple[bool, str]:
    """Let four programs make one model with four methods; then replace an open model by that of another encoder."""
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        (folder / "pets" / name).mkdir(parents=True)
        for number in range(2):
            Image.fromarray(rng.integers(0, 255, (32, 32, 3), np.uint8)).save(folder / "pets" / name / f"{number}.png")
    command = [sys.executable, "-c", _RUN, "learn", str(folder / "m.hycal"), str(folder / "pets"), "--method"]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = {**os.environ, "HYCAL_CACHE": str(folder / "cache")}
    runs = [subprocess.Popen([*command, method], env=environment, **options) for method in _METHODS]  # type: ignore[call-overload]
    said = [run.communicate()[1] for run in runs]
    codes = sorted(run.returncode for run in runs)
    told = all("model" in text for run, text in zip(runs, said, strict=True) if run.returncode)
    learned(folder)
    opened = model(folder)
    opened.path.unlink()
    other = Project(opened.path, empty_state(Space("other", "other-space", 256), has_text=False))
    other.learn(arrivals([1]))
    refused = _refusal(lambda: opened.learn(arrivals([2]))) is not None
    return codes == [
        0,
        1,
        1,
        1,
    ] and told and refused, f"exit codes {codes}; write to another encoder refused: {refused}"


def flipped(folder: Path, *, name: str, times: int) -> tuple[bool, str]:
    """Flip random bits of one kind of file."""
    told = flip(targets(folder)[name], times, random.Random(0))
    silent = sum(number for outcome, number in told.items() if is_silent(outcome))
    return silent == 0, f"{silent} of {times:,} flips silent or uncaught; {dict(told)}"


def hostile_undo(folder: Path) -> tuple[bool, str]:
    """Open files whose undo data holds rows and labels that no model may hold."""
    learned(folder)
    model(folder).forget("things/3")
    rows, shelves = "project.retired_samples", "shelves"

    def undo(manifest: dict[str, Any]) -> Any:
        return manifest["project"]["history"][-1]["undo"]

    crafted: list[Callable[[dict[str, Any], dict[str, Any]], object]] = [
        lambda m, t: t.update({rows: np.full_like(t[rows], np.nan)}),
        lambda m, t: t.update({rows: t[rows][:, 1:]}),
        lambda m, t: undo(m)[shelves].append([7, None]),
        lambda m, t: undo(m)[shelves].append([["x"], None]),
        lambda m, t: undo(m).update(memo=3),
    ]
    paths = (_crafted(folder / "model.hycal", change) for change in crafted)
    refused = sum(_refusal(partial(Project, path), ModelFileError) is not None for path in paths)
    return refused == len(crafted), f"{refused} of {len(crafted)} refused"


def forgetting(folder: Path) -> tuple[bool, str]:
    """Kill `forget --for-good` a few times; look for the images in all files, and in the memory of a server."""
    case = next(case for case in WRITERS if case.name == "hycal forget --for-good")
    prepared, chance = Prepared.of(case, folder / "kills"), random.Random(0)
    wrong = [prepared.killed(prepared.moment(chance, in_time=at % 2 == 0)).wrong for at in range(10)]
    learned(folder)
    service = Service(model(folder, journal=True), None)
    state = service.state
    service.advice(state)
    service.map(state)
    service.warm()
    class_ = state.classes["things/9"]
    held = [weakref.ref(thing) for thing in (*class_.examples, class_, class_.record, class_.rows)]
    del state, class_
    with mock.patch.dict(os.environ, {"HYCAL_CACHE": str(folder / "none")}):
        service.forget("things/9", for_good=True)
    gc.collect()
    alive = sum(reference() is not None for reference in held)
    return not any(
        wrong
    ) and not alive, f"{sum(map(bool, wrong))} of 10 kills left something; {alive} objects in memory"


def restored(folder: Path) -> tuple[bool, str]:
    """Put a copy of a model back beside the journal of later changes."""
    learned(folder)
    copy = (folder / "model.hycal").read_bytes()
    model(folder).forget("things/3")
    model(folder, journal=True).correct(image(0), "things/9")
    (folder / "model.hycal").write_bytes(copy)
    message = _refusal(lambda: model(folder), ModelFileError) or ""
    named = f"move {journal_of(folder / 'model.hycal')} away" in message
    return named, "says which file to move away" if named else f"says {message!r}"


def no_locks(folder: Path) -> tuple[bool, str]:
    """Change a model where the system has no `flock`."""

    def missing(descriptor: int, operation: int) -> None:
        raise OSError(38, "Function not implemented")

    with mock.patch("fcntl.flock", missing):
        message = _refusal(lambda: learned(folder), StorageError) or ""
    return "has no file locks" in message, message.split(",")[0] or "not refused"


def _flips(name: str, times: int) -> Callable[[Path], tuple[bool, str]]:
    return lambda folder: flipped(folder, name=name, times=times)


CASES: tuple[Case, ...] = (
    Case(5, "parameters that no machine can hold are refused before anything is allocated", too_large),
    Case(6, "classes in another order are refused by load and Project alike", reversed_classes),
    Case(7, "one model has one encoder and one method, whoever writes first", many_writers),
    Case(8, "no flipped bit of a journal is silent", _flips("journal", 500)),
    Case(9, "rows and labels of the undo data are checked", hostile_undo),
    Case(11, "no flipped bit of a model is silent", _flips("model and undo", 500)),
    Case(12, "after forgetting for good nothing is left in files and memory, also after kills", forgetting),
    Case(
        14,
        "no flipped bit of the cache index gives another row, or an error of another kind",
        _flips("index of the cache", 500),
    ),
    Case(15, "a journal beside a restored model is told, and what to do with it", restored),
    Case(16, "a file system without locks is told", no_locks),
)
