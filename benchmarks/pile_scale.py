"""Measures for `benchmarks.pile`: 100,000 embeddings to choose from, and 10,000 files to sort and to put back."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.faults.sorting import sort_pile, tree, undo_pile, write_pile
from hycal import NCM, HierarchicalHyCal, discover, suggest
from hycal.validation import Floats, unit_rows

ROWS, WIDTH, CLASSES, FILES = 100_000, 512, 200, 10_000


def synthetic(rows: int = ROWS) -> tuple[Floats, Floats]:
    """Return unit rows around class means, as many of a class as its rank allows (Zipf), and the means."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(CLASSES, WIDTH)).astype(np.float32)
    chance = 1.0 / np.arange(1, CLASSES + 1)
    own = rng.choice(CLASSES, rows, p=chance / chance.sum())
    return unit_rows(means[own] + 1.5 * rng.normal(size=(rows, WIDTH)).astype(np.float32)), unit_rows(means)


def print_choosing() -> None:
    """Print time of the processor and peak memory of suggestions and groups for 100,000 embeddings."""
    X, means = synthetic()
    taught = np.repeat(means[: CLASSES // 2], 5, axis=0)
    taught = unit_rows(taught + 0.05 * np.random.default_rng(1).normal(size=taught.shape))
    labels = np.repeat(np.arange(CLASSES // 2), 5)
    print(f"\n{ROWS:,} x {WIDTH}: seconds of the processor, and the largest memory so far")
    works: dict[str, Callable[[], object]] = {
        "suggest 20 without a model": lambda: suggest(X, 20),
        "suggest 200 without a model": lambda: suggest(X, 200),
        "suggest 20 with NCM": lambda: suggest(X, 20, NCM().fit(taught, labels)),
        "suggest 20 with the default": lambda: suggest(X, 20, HierarchicalHyCal().fit(taught, labels)),
        "discover with the default": lambda: discover(X, HierarchicalHyCal().fit(taught, labels)),
    }
    for name, work in works.items():
        began = time.process_time()
        work()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{name:32}{time.process_time() - began:8.1f} s{memory:8.2f} GB", flush=True)


def print_moving() -> None:
    """Sort 10,000 files by moves and by copies, put them back, and say whether every byte and time is as it was."""
    print(f"\n{FILES:,} files: sorted and put back, seconds of the processor")
    for way in ("move", "copy"):
        with tempfile.TemporaryDirectory() as name:
            room = Path(name)
            write_pile(room, FILES)
            before = tree(room)
            began = time.process_time()
            sort_pile(room, way)
            between = time.process_time()
            placed = sum(path.suffix == ".jpg" for path in (room / "out").rglob("*"))
            undo_pile(room)
            same = "as it was" if tree(room) == before and placed == FILES else "ANOTHER TREE"
            print(f"{way:8}{between - began:8.1f} s{time.process_time() - between:8.1f} s   {same}", flush=True)
