"""Sealed models: bytes and answers, half precision, and a million classes from a mapped file.

    python -m benchmarks.seal                       1,000 classes of 200 images in 512 dimensions: each method; 3 GB
    python -m benchmarks.seal --shots 20            fewer images
    python -m benchmarks.seal real                  bundled disciplines and CLIP ViT-B/32: sealed, and half precision
    python -m benchmarks.seal views                 the same of the disciplines in two encoders
    python -m benchmarks.seal early                 disciplines: a part learned after sealing, in one encoder and in two
    python -m benchmarks.seal mapped                1,000,000 classes of one image, scored from a mapped file of 1 GB

Random features are 1,024 wide. "Difference" is the largest of any probability against the open model. The classes are
drawn in ten domains around superclasses, as in `benchmarks.scale`. "Points" are those of accuracy that a column loses
against the open model. Resident memory is that of the process that scores: its own, and its pages of the file.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.domains import Domain, all_queries, disciplines, learn_in_order, missing, stream
from benchmarks.nodes import NOISE, SPREAD, WIDTH, noise, superclasses, unit
from benchmarks.printed import PrintedTable
from benchmarks.step import PARAMETERS
from hycal import METHODS, load
from hycal.base import IncrementalClassifier
from hycal.scale.mapped import MappedMeans
from hycal.storage import model_file
from hycal.storage.model_file import Content
from hycal.validation import Doubles, Floats

_DOMAINS, _QUERIES = 10, 256
_VIEWS = {"clip-vit-b16-w8": 512, "builtin": 512}
_SHOTS = 12


def sealable(has_text: bool, **parameters: Any) -> dict[str, IncrementalClassifier]:
    """Return every method that can be sealed and has these parameters, without text where there is none."""
    found = {}
    for name, method in METHODS.items():
        free = {} if has_text else method.without_text
        if free is not None and method(**free).sealing.keeps and set(parameters) <= set(method().get_params()):
            found[name] = method(**free, **PARAMETERS.get(name, {}), **parameters)
    return found


def synthetic(classes: int, shots: int) -> tuple[list[Domain], Floats]:
    """Return domains of drawn classes, and queries."""
    rng = np.random.default_rng(0)
    above = superclasses(rng)
    domains, queries = [], []
    for number in range(_DOMAINS):
        own = above[_DOMAINS * number + rng.integers(_DOMAINS, size=classes // _DOMAINS)]
        centres = unit(own + SPREAD * noise(rng, len(own), WIDTH))
        X = np.concatenate([unit(centre + NOISE * noise(rng, shots, WIDTH)) for centre in centres])
        y = np.repeat([f"{number}/{label:04d}" for label in range(len(centres))], shots)
        domains.append(Domain(str(number), X, y, X[:0], y[:0], None))
        asked = centres[rng.integers(len(centres), size=_QUERIES // _DOMAINS)]
        queries.append(unit(asked + NOISE * noise(rng, len(asked), WIDTH)))
    return domains, np.concatenate(queries)


def saved(model: IncrementalClassifier, precision: str) -> tuple[int, IncrementalClassifier]:
    """Return the bytes of the file of a model, and the model that is read back."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path, precision=precision)
        return path.stat().st_size, load(path)


def compare(classes: int, shots: int, methods: list[str]) -> None:
    """Print bytes and answers of each method, open and sealed."""
    domains, queries = synthetic(classes, shots)
    title = f"{classes:,} classes of {shots} images in {WIDTH} dimensions, {_DOMAINS} domains"
    table = PrintedTable(
        title, "method", "keeps", "open MB", "sealed MB", "of the open file", "half precision", "largest change"
    )
    for name, method in sealable(has_text=False).items():
        if methods and name not in methods:
            continue
        model = learn_in_order(method, domains)
        before, opened = saved(model, "single")
        expected, sealed = opened.predict_proba(queries), model.seal()
        size, loaded = saved(sealed, "single")
        half, _ = saved(sealed, "half")
        difference = float(np.abs(loaded.predict_proba(queries) - expected).max())
        bytes_ = f"{before / 1e6:.1f}", f"{size / 1e6:.1f}", f"{size / before:.3f}", f"{half / before:.3f}"
        table.row(name, str(method.sealing.keeps), *bytes_, f"{difference:.0e}")


def real() -> None:
    """Print what sealing and half precision change on real embeddings."""
    data = {"Bundled disciplines": disciplines()} | ({} if missing() else {"Five domains": stream(queries=1000)})
    for title, domains in data.items():
        print_copies(title, domains, sealable(all(domain.text is not None for domain in domains)))


def views() -> None:
    """Print the same of models of two encoders."""
    methods = sealable(has_text=False, views=tuple(_VIEWS.values()))
    print_copies("Bundled disciplines in two encoders", disciplines(tuple(_VIEWS)), methods)


def print_copies(title: str, domains: list[Domain], methods: dict[str, IncrementalClassifier]) -> None:
    """Print how copies of a model of each method differ from it."""
    X, y = all_queries(domains)
    told = f"{title}: {sum(len(one.X) for one in domains):,} images, {len(X):,} queries"
    table = PrintedTable(told, "method", "accuracy", *_COPIES)
    for name, method in methods.items():
        model = learn_in_order(method, domains)
        chances = model.predict_proba(X)
        right = 100.0 * float(np.mean(model.classes_[chances.argmax(axis=1)] == y))
        copies = saved(model, "half")[1], saved(model.seal(), "single")[1], saved(model.seal(), "half")[1]
        table.row(name, f"{right:.2f}", *(_change(copy, X, y, chances, right) for copy in copies))


_COPIES = ("open, half", "sealed", "sealed, half")


def _change(copy: IncrementalClassifier, X: Floats, y: object, chances: Doubles, right: float) -> str:
    """Return the points gained, the share of changed answers, and the mean of the largest change of a probability."""
    found = copy.predict_proba(X)
    labels = found.argmax(axis=1)
    changed = 100.0 * float(np.mean(labels != chances.argmax(axis=1)))
    moved = float(np.abs(found - chances).max(axis=1).mean())
    return f"{100.0 * float(np.mean(copy.classes_[labels] == y)) - right:+.2f}, {changed:.2f}%, {moved:.0e}"


def early() -> None:
    """Print accuracy, and the accuracy that the model expects, where a part was learned after sealing."""
    columns = "open", "sealed at the end", "half of the domains first", "5 images first", "1 image first"
    table = PrintedTable(f"{_SHOTS} images of each class: accuracy, and that expected", "method", *columns)
    for encoders, title in ((tuple(_VIEWS)[:1], ""), (tuple(_VIEWS), ", two encoders")):
        domains = disciplines(encoders)
        X, y = all_queries(domains)
        whole, half = [_images(one, 0, _SHOTS) for one in domains], len(domains) // 2
        widths = tuple(_VIEWS.values()) if len(encoders) > 1 else None
        for name, method in sealable(has_text=False, views=widths).items():
            models = [
                learn_in_order(method.with_parameters(), whole),
                learn_in_order(method.with_parameters(), whole).seal(),
                learn_in_order(learn_in_order(method.with_parameters(), whole[:half]).seal(), whole[half:]),
            ]
            for first in (5, 1):
                begun, rest = ([_images(one, *part) for one in domains] for part in ((0, first), (first, _SHOTS)))
                models.append(learn_in_order(learn_in_order(method.with_parameters(), begun).seal(), rest))
            table.row(f"{name}{title}", *(_expected(model, X, y) for model in models))


def _images(domain: Domain, start: int, stop: int) -> Domain:
    """Return some images of each class."""
    rows = [np.flatnonzero(domain.y == name)[start:stop] for name in np.unique(domain.y)]
    chosen = np.concatenate(rows)
    return replace(domain, X=domain.X[chosen], y=domain.y[chosen])


def _expected(model: IncrementalClassifier, X: Floats, y: npt.NDArray[np.str_]) -> str:
    chances = model.predict_proba(X)
    right = np.mean(model.classes_[chances.argmax(axis=1)] == y)
    return f"{100 * right:.1f}, {100 * chances.max(axis=1).mean():.1f}"


def write_one_shot(path: Path, classes: int) -> None:
    """Write a sealed NCM of so many classes of one image, in half precision, as `save` does."""
    rng, means = np.random.default_rng(0), np.empty((classes, WIDTH), np.float16)
    for start in range(0, classes, 10_000):
        part = rng.standard_normal((min(10_000, classes - start), WIDTH), dtype=np.float32)
        means[start : start + len(part)] = part / np.linalg.norm(part, axis=1, keepdims=True)
    nothing, none = np.empty((0, WIDTH), np.float16), np.empty(0, np.int64)
    manifest: dict[str, Any] = {
        "method": "NCM",
        "parameters": {"metric": "cosine"},
        "encoder": None,
        "labels": list(range(classes)),
        "domains": [""] * classes,
        "sealed": {"keeps": "means", "groups": [""] * classes, "spreads": [], "weighted": []},
        "precision": "half",
    }
    tensors: dict[str, npt.NDArray[Any]] = {
        "samples": nothing,
        "texts": nothing,
        "has_text": np.zeros(classes, np.uint8),
        "counts": np.ones(classes, np.int64),
        "sealed.means": means,
        "sealed.factors": nothing,
        "sealed.factor_rows": np.zeros(classes, np.int64),
        "sealed.spreads": nothing,
        "sealed.spread_rows": none,
        "sealed.spread_freedoms": none,
        "sealed.number.calibration": np.array([0.01]),
        "sealed.number.familiarity": np.array([0.0, 1.0]),
    }
    model_file.write(path, Content(manifest, tensors))


def resident() -> dict[str, float]:
    """Return the resident memory of this process in MB: the most so far, now, and what of it are pages of files."""
    lines = [line.split() for line in Path("/proc/self/status").read_text().splitlines()]
    found = {line[0].rstrip(":"): float(line[1]) / 1e3 for line in lines if len(line) > 1 and line[1].isdigit()}
    return {name: found[name] for name in ("VmHWM", "VmRSS", "RssFile")}


def score(path: Path) -> None:
    """Print the memory of this process while it scores from the mapped file."""
    start = resident()
    began = time.perf_counter()
    model = MappedMeans(path)
    opened, opening = resident(), time.perf_counter() - began
    rows = np.array([0, len(model.labels) // 2, len(model.labels) - 1])
    queries = np.asarray(model._means[rows], np.float32)
    began = time.perf_counter()
    found = model.best(np.repeat(queries, 11, axis=0)[:32], top=5)
    seconds = time.perf_counter() - began
    right = [row[0] for row in found.labels[::11]] == [model.labels[row] for row in rows]
    names = {"at the start": start, "file opened": opened, "32 queries scored": resident()}
    for name, each in names.items():
        print(f"{name:<18} " + ", ".join(f"{key} {value:,.0f} MB" for key, value in each.items()))
    print(f"opened in {opening:.1f} s, 32 queries in {seconds:.1f} s; the classes of their own means: {right}")


def mapped(classes: int) -> None:
    """Write the file in one process, and score it in another."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        for work in ("write", "score"):
            if work == "score":
                print(f"{classes:,} classes, {path.stat().st_size / 1e6:,.0f} MB", flush=True)
            command = [sys.executable, "-m", "benchmarks.seal", work, "--classes", str(classes), "--path", str(path)]
            subprocess.run(command, check=True, env=os.environ)


_WORK = ("compare", "real", "views", "early", "mapped", "write", "score")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("work", nargs="?", default="compare", choices=_WORK)
    parser.add_argument("--classes", type=int, default=0)
    parser.add_argument("--shots", type=int, default=200)
    parser.add_argument("--methods", nargs="*", default=[])
    parser.add_argument("--path", type=Path)
    asked = parser.parse_args()
    if asked.work == "compare":
        compare(asked.classes or 1000, asked.shots, asked.methods)
    elif asked.work == "real":
        real()
    elif asked.work == "views":
        views()
    elif asked.work == "early":
        early()
    elif asked.work == "mapped":
        mapped(asked.classes or 1_000_000)
    elif asked.work == "write":
        write_one_shot(asked.path, asked.classes)
    else:
        score(asked.path)


if __name__ == "__main__":
    main()
