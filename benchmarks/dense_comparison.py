"""HyCal against the released-style dense loop, in the same run: learning, scoring, stored bytes; then growth.

    python -m benchmarks.dense_comparison            both tables
    python -m benchmarks.dense_comparison ratios     300 classes x 512-d, 5, 20 and 50 shots, 2,000 queries
    python -m benchmarks.dense_comparison growth     1k, 10k and 100k classes of 5 shots, 256 queries; needs 8 GB

The dense loop treats classes one by one, so it is timed on a part of them and scaled up. Every time is the best of a
few runs. Absolute times depend on the machine and on what else it does; the ratios are the result.

"Of bare product" is the speed of scoring against a matrix product alone: first against the one of the textbook low-rank
form, with (sum of K + 3 C) columns, then against the one that scoring really does, with (sum of K + C) columns.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import dense_loop
from hycal import HyCal
from hycal.validation import Floats

CLASSES, WIDTH, QUERIES = 300, 512, 2000
ROUNDS = 5
DENSE_CLASSES = 20  # timed; the rest is the same work again
WANTED = {5: (300, 75), 20: (120, 30), 50: (40, 12)}  # learning and scoring, times faster


def best_of(runs: int, work: Callable[[], object]) -> float:
    """Return the seconds of the fastest run."""
    time.sleep(0.3)  # BLAS threads of the last measurement spin on for a while, and would take a core from this one
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def draw(classes: int, shots: int, seed: int = 0) -> tuple[Floats, Floats, Floats]:
    """Return samples (C, K, d), texts (C, d) and class centres, unit rows in a cone as CLIP's are."""
    rng = np.random.default_rng(seed)

    def unit(x: Floats) -> Floats:
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
        return x

    centres = unit(1.5 + rng.standard_normal((classes, WIDTH), dtype=np.float32))
    samples = rng.standard_normal((classes, shots, WIDTH), dtype=np.float32)
    samples *= 0.02
    samples += centres[:, None]
    texts = unit(centres + 0.1 * rng.standard_normal((classes, WIDTH), dtype=np.float32))
    return unit(samples), texts, centres


def learned(samples: Floats, texts: Floats) -> HyCal:
    """Return a model ready to answer: learned, and its Gaussians derived."""
    classes, shots, width = samples.shape
    labels = np.repeat(np.arange(classes), shots)
    model = HyCal().partial_fit(samples.reshape(-1, width), labels, text=dict(enumerate(texts)))
    model.snapshot()
    return model


def ratios(shots: int) -> None:
    """Print one row: fast against dense at this many shots."""
    samples, texts, centres = draw(CLASSES, shots)
    rng = np.random.default_rng(1)
    queries = centres[rng.integers(CLASSES, size=QUERIES)] + 0.02 * rng.standard_normal(
        (QUERIES, WIDTH), dtype=np.float32
    )
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    scale = CLASSES / DENSE_CLASSES

    gaussians = [dense_loop.learn_class(samples[c], texts[c], 1e-4) for c in range(DENSE_CLASSES)]
    dense_learn = scale * best_of(
        2, lambda: [dense_loop.learn_class(samples[c], texts[c], 1e-4) for c in range(DENSE_CLASSES)]
    )
    dense_measure = scale * best_of(
        3, lambda: [dense_loop.measure_class(queries, *gaussians[c], texts[c]) for c in range(DENSE_CLASSES)]
    )
    full = rng.standard_normal((2, QUERIES, CLASSES), dtype=np.float32)
    dense_score = dense_measure + best_of(3, lambda: dense_loop.blend(full[0], full[1], [shots] * CLASSES, 10, 5))

    model = learned(samples, texts)
    bank = model.snapshot().value.bank
    own_rows = len(bank.means) + len(bank.lengths) + len(bank.factors)
    products = [rng.standard_normal((rows, WIDTH), dtype=np.float32) for rows in (own_rows, CLASSES * (shots + 3))]
    fast_learn = best_of(3, lambda: learned(samples, texts))
    works = [*(partial(np.matmul, queries, matrix.T) for matrix in products), partial(model.class_scores, queries)]
    rounds = [[best_of(5, work) for work in works] for _ in range(ROUNDS)]  # in turn: other jobs disturb all alike
    own, textbook, fast_score = (min(times) for times in zip(*rounds, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        stored = (Path(folder) / "model").stat().st_size
    dense_bytes = CLASSES * (WIDTH**2 + WIDTH) * 4
    want_learn, want_score = WANTED[shots]
    print(
        f"{shots:5d}  {dense_learn:8.2f} s {fast_learn * 1e3:7.1f} ms"
        f" {dense_learn / fast_learn:6.0f}x (>={want_learn:3d}x)"
        f"  {dense_score:7.2f} s {fast_score * 1e3:7.1f} ms {dense_score / fast_score:5.0f}x (>={want_score:2d}x)"
        f"  {100 * textbook / fast_score:4.0f}% (>=75%) {100 * own / fast_score:3.0f}%"
        f"  {stored / 1e6:5.1f} MB 1/{dense_bytes / stored:3.1f}"
        f"  {(model.nbytes_ + bank.nbytes) / 1e6:5.1f} MB 1/{dense_bytes / (model.nbytes_ + bank.nbytes):3.1f}"
    )


def growth(classes: int) -> None:
    """Print one row: learning and scoring at this many classes."""
    samples, texts, centres = draw(classes, 5)
    start = time.perf_counter()
    model = learned(samples, texts)
    learn_time = time.perf_counter() - start
    del samples, texts
    queries = centres[:256]
    score_time = best_of(3, lambda: model.class_scores(queries))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    held = (model.nbytes_ + model.snapshot().value.bank.nbytes) / 1e9
    print(
        f"{classes:8d}  {learn_time:7.2f} s {learn_time / classes * 1e6:6.0f} µs/class"
        f"  {score_time * 1e3:8.1f} ms {score_time / classes * 1e6:6.1f} µs/class"
        f"  {held:5.2f} GB {held / classes * 1e6:5.1f} kB/class  peak {peak:5.2f} GB",
        flush=True,
    )


def main() -> None:
    """Run the tables named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="?", choices=["ratios", "growth"], help="default: both")
    parser.add_argument("--classes", type=int, help=argparse.SUPPRESS)  # one row of growth, in a process of its own
    options = parser.parse_args()
    if options.classes:
        growth(options.classes)
        return
    if options.table != "growth":
        print(f"{CLASSES} classes x {WIDTH}-d, {QUERIES} queries; dense = released-style loop, float32, pseudo-inverse")
        print(
            "shots  learn: dense      fast    ratio             score: dense    fast   ratio"
            "          of bare product   file vs dense   memory vs dense"
        )
        for shots in WANTED:
            ratios(shots)
    if options.table != "ratios":
        print("\nclasses  learn (5 shots)              score 256 queries             held for scoring")
        for classes in (1_000, 10_000, 100_000):
            subprocess.run([sys.executable, "-m", "benchmarks.dense_comparison", "--classes", str(classes)], check=True)


if __name__ == "__main__":
    main()
