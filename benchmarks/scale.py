"""Models of many classes: loading, the first answer, scoring with and without a shortlist; a million classes on paper.

    python -m benchmarks.scale                  1k, 10k and 100k classes, then a million by a line through them; 8 GB
    python -m benchmarks.scale --most 10000     up to 10k classes only
    python -m benchmarks.scale --fusion image   without texts
    python -m benchmarks.scale --learn 100000   memory of learning so many classes and asking, in one process
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.scale --clock cpu    seconds of one core, whatever else the machine does

Classes have 5 shots in 512 dimensions, drawn around 100 superclasses so that neighbours are near. Times are the best of
a few; the model is written by one process and loaded by another, its file being in the page cache. Peak is the memory
of the process that loads and answers, mapped file included. "Same" is how often the shortlist's best class is that of
scoring every class; "recall" how often that class was among the nearest 128 at all; the errors of the moments are the
largest over 256 queries, in standard deviations over all classes.

"8 nodes, same" is how often nodes that hold a part of the classes each, and exchange only moments and their best
class, give the answer of one machine. At the end the same shortlist on the bundled embeddings of real images.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.nodes import NOISE, SHOTS, SPREAD, WIDTH, Moments, best, draw, joint, noise, superclasses, unit
from hycal import HyCal, load
from hycal.data import load_xd8
from hycal.scale.shortlist import Shortlist
from hycal.validation import Floats

QUERIES, NODES, SAMPLE = 256, 8, 2048
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
SIZES = (1_000, 10_000, 100_000)


class Stopwatch:
    """Measures on one clock."""

    def __init__(self, clock: str) -> None:
        self.now = CLOCKS[clock]

    def __call__(self, work: Callable[[], Any], runs: int = 1) -> tuple[float, Any]:
        """Return the seconds of the fastest run, and what the last one returned."""
        seconds, result = [], None
        for _ in range(runs):
            start = self.now()
            result = work()
            seconds.append(self.now() - start)
        return min(seconds), result


def write(folder: Path, classes: int, fusion: str, timed: Stopwatch) -> None:
    """Write a model and queries."""
    rng = np.random.default_rng(0)
    records, centres = draw(rng, superclasses(rng), classes)
    model = HyCal(fusion=fusion).with_records(records)
    seconds, _ = timed(lambda: model.save(folder / "model"))
    wanted = rng.integers(classes, size=QUERIES)
    np.savez(folder / "queries.npz", X=unit(centres[wanted] + NOISE * noise(rng, QUERIES, WIDTH)), y=wanted)
    (folder / "save.json").write_text(json.dumps(seconds))


def learning(classes: int, fusion: str) -> None:
    """Learn classes in calls of 10,000, then ask; print the memory of the process after each step."""
    rng, model, began = np.random.default_rng(0), HyCal(fusion=fusion), time.perf_counter()
    above = superclasses(rng)

    def say(what: str) -> None:
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        passed = time.perf_counter() - began
        print(f"{what:<24}{resident / 1e9:8.2f} GB{peak / 1e9:8.2f} GB{passed:8.0f} s", flush=True)

    print(f"memory of {classes:,} classes, learned and asked in one process")
    print(f"{'':<24}{'resident':>11}{'at most':>11}{'passed':>10}", flush=True)
    for start in range(0, classes, 10_000):
        labels = np.arange(start, min(start + 10_000, classes))
        centres = unit(above[rng.integers(len(above), size=len(labels))] + SPREAD * noise(rng, len(labels), WIDTH))
        text = dict(zip(labels.tolist(), unit(centres + NOISE * noise(rng, len(labels), WIDTH)), strict=True))
        X = NOISE * noise(rng, SHOTS * len(labels), WIDTH)
        X += np.repeat(centres, SHOTS, axis=0)
        model.partial_fit(X, np.repeat(labels, SHOTS), text=text)
        del centres, text, X
    say(f"{classes:,} classes learned")
    queries = unit(noise(rng, QUERIES, WIDTH))
    model.predict(queries[:1])
    say("first answer")
    model.predict(queries)
    say(f"{QUERIES} answers")
    model.predict_proba(queries[:1])
    say("first probability")


def measure(folder: Path, timed: Stopwatch) -> dict[str, float]:
    """Return everything about the model in `folder`, in the order in which a process would meet it."""
    with np.load(folder / "queries.npz") as file:
        X, y = file["X"], file["y"]
    loading, model = timed(lambda: load(folder / "model"), runs=5)
    assert isinstance(model, HyCal)
    first, _ = timed(lambda: model.predict(X[:1]))
    one, _ = timed(lambda: model.predict(X[:1]), runs=5)
    batch, every = timed(lambda: model.decision_function(X), runs=2)
    held = model.nbytes_ + model.snapshot().value.bank.nbytes
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    building, shortlist = timed(lambda: Shortlist(model, sample=SAMPLE))
    short_one, _ = timed(lambda: shortlist.best(X[:1], 1), runs=5)
    short_batch, (columns, _) = timed(lambda: shortlist.best(X, shortlist.nearest), runs=2)
    exact = shortlist.exactly()
    exact_one, _ = timed(lambda: exact.best(X[:1], 1), runs=5)
    exact_batch, (exact_columns, _) = timed(lambda: exact.best(X, 1), runs=2)
    return {
        "classes": len(model.classes_),
        "file": (folder / "model").stat().st_size,
        "save": json.loads((folder / "save.json").read_text()),
        "load": loading,
        "first": first,
        "one": one,
        "query": batch / len(X),
        "peak": peak,
        "held": held,
        "build": building,
        "short one": short_one,
        "short query": short_batch / len(X),
        "exact one": exact_one,
        "exact query": exact_batch / len(X),
        "exact same": float((exact_columns[:, 0] == every.argmax(axis=1)).mean()),
        "accuracy": float((every.argmax(axis=1) == y).mean()),
        **agreement(model, shortlist, X, every, columns),
        "apart": apart(model, X, every),
    }


def agreement(
    model: HyCal, shortlist: Shortlist, X: Floats, every: Floats, columns: np.ndarray[Any, Any]
) -> dict[str, float]:
    """Compare a shortlist with the scores of every class."""
    best = every.argmax(axis=1)
    found = {
        "same": float((columns[:, 0] == best).mean()),
        "recall": float((columns == best[:, None]).any(axis=1).mean()),
    }
    measures = [scores.copy() for scores in model.snapshot().value.bank.evaluate(X)]  # moments use the same work space
    for name, scores, (mean, spread) in zip(("cosine", "distance"), measures, shortlist.moments(X), strict=True):
        true_mean, true_spread = scores.mean(axis=0, dtype=np.float64), scores.std(axis=0, dtype=np.float64, ddof=1)
        found[f"{name} mean"] = float(np.abs((mean - true_mean) / true_spread).max())
        found[f"{name} spread"] = float(np.abs(spread / true_spread - 1).max())
    return found


def apart(model: HyCal, X: Floats, every: Floats) -> float:
    """Return how often nodes that know a part of the classes each find the best class of all.

    Each sends count, mean and squared deviation of its measures, gets those of all, and sends its best class.
    """
    bank, weights, parts = model.snapshot().value.bank, model.weights(model.counts_), []
    for part in np.array_split(np.arange(len(model.classes_)), NODES):
        node = bank.subset(part)
        parts.append((part[node.order], [scores.copy() for scores in node.evaluate(X)]))
    whole = joint([Moments.of(measures) for _, measures in parts])
    found = [(*best(measures, whole, weights[members]), members) for members, measures in parts]
    winner = np.argmax([scores for scores, _, _ in found], axis=0)
    columns = np.array([members[rows] for _, rows, members in found])[winner, np.arange(len(X))]
    return float((columns == every.argmax(axis=1)).mean())


def real() -> None:
    """Print the agreement on the bundled embeddings of eight disciplines."""
    model, queries = HyCal(fusion="image"), []
    for name, domain in load_xd8().items():
        labels = np.array([f"{name}/{label}" for label in domain.class_names])
        model.partial_fit(domain.train_x, labels[domain.train_y], domain=name)
        queries.append(domain.test_x)
    X = np.concatenate(queries)[::5]
    every = model.decision_function(X)
    for nearest in (8, 32, 128):
        columns, _ = Shortlist(model, nearest=nearest).best(X, nearest)
        best = every.argmax(axis=1)
        same, recall = (columns[:, 0] == best).mean(), (columns == best[:, None]).any(axis=1).mean()
        print(
            f"real embeddings, {len(model.classes_)} classes, {len(X)} queries, nearest {nearest:3d}: "
            f"same {100 * same:.2f}%, recall {100 * recall:.2f}%"
        )


def table(title: str, columns: dict[str, Callable[[dict[str, float]], str]], rows: list[dict[str, float]]) -> None:
    """Print rows under their headings."""
    lines = [list(columns), *([form(row) for form in columns.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    print(f"\n{title}")
    for line in lines:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def show(rows: list[dict[str, float]]) -> None:
    """Print what was measured."""
    scoring = {
        "classes": lambda row: f"{row['classes']:,}",
        "file": lambda row: f"{row['file'] / 1e9:.2f} GB",
        "save": lambda row: f"{row['save']:.1f} s",
        "load": lambda row: f"{row['load']:.3f} s",
        "first answer": lambda row: f"{row['first']:.2f} s",
        "one query": lambda row: f"{1e3 * row['one']:.1f} ms",
        "of 256, each": lambda row: f"{1e3 * row['query']:.2f} ms",
        "held": lambda row: f"{row['held'] / 1e9:.2f} GB",
        "peak": lambda row: f"{row['peak'] / 1e9:.2f} GB",
        f"{NODES} nodes, same": lambda row: f"{100 * row['apart']:.2f}%",
    }
    short = {
        "classes": lambda row: f"{row['classes']:,}",
        "build": lambda row: f"{row['build']:.1f} s",
        "one query": lambda row: f"{1e3 * row['short one']:.1f} ms",
        "of 256, each": lambda row: f"{1e3 * row['short query']:.2f} ms",
        "same": lambda row: f"{100 * row['same']:.2f}%",
        "recall": lambda row: f"{100 * row['recall']:.2f}%",
        "cosine: mean": lambda row: f"{row['cosine mean']:.0e}",
        "spread": lambda row: f"{row['cosine spread']:.0e}",
        "distance: mean": lambda row: f"{row['distance mean']:.0e}",
        "spread ": lambda row: f"{row['distance spread']:.0e}",
        "all moments exact: one": lambda row: f"{1e3 * row['exact one']:.1f} ms",
        "of 256, each ": lambda row: f"{1e3 * row['exact query']:.2f} ms",
        "same ": lambda row: f"{100 * row['exact same']:.2f}%",
        "(accuracy of all)": lambda row: f"{100 * row['accuracy']:.1f}%",
    }
    table("every class is scored", scoring, rows)
    table("with a shortlist", short, rows)


def project(small: dict[str, float], large: dict[str, float]) -> None:
    """Print the line through two sizes at a million classes: on one machine, and on ten nodes with a tenth each."""
    units = {"file": (1e9, "GB"), "held": (1e9, "GB"), "load": (1, "s"), "first": (1, "s"), "one": (1, "s"),
             "query": (1e-3, "ms")}  # fmt: skip
    print("\na million classes, by a line through 10,000 and 100,000")
    print(f"{'':20s} {'one machine':>14s} {'each of 10 nodes':>20s}")
    for name, (scale, what) in units.items():
        slope = (large[name] - small[name]) / (large["classes"] - small["classes"])
        values = [(large[name] + slope * (classes - large["classes"])) / scale for classes in (1e6, 1e5)]
        print(f"{name:20s} {values[0]:11.2f} {what:2s} {values[1]:17.2f} {what}")


def main() -> None:
    """Run the sizes, each in processes of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=SIZES[-1])
    parser.add_argument("--fusion", choices=["sum", "image", "concat"], default="sum")
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall")
    parser.add_argument("--learn", type=int)
    parser.add_argument("--write", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.learn:
        learning(options.learn, options.fusion)
        return
    if options.write:
        write(options.folder, options.write, options.fusion, Stopwatch(options.clock))
        return
    if options.measure:
        print(json.dumps(measure(options.folder, Stopwatch(options.clock))))
        return
    rows = []
    for classes in (size for size in SIZES if size <= options.most):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "benchmarks.scale", "--folder", folder]
            command += ["--fusion", options.fusion, "--clock", options.clock]
            subprocess.run([*command, "--write", str(classes)], check=True)
            done = subprocess.run([*command, "--measure"], check=True, stdout=subprocess.PIPE, text=True)
        rows.append(json.loads(done.stdout))
    show(rows)
    if len(rows) > 2:
        project(rows[1], rows[2])
    print()
    real()


if __name__ == "__main__":
    main()
