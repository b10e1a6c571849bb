"""HyCal against the released-style dense loop, in the same run: learning, scoring, stored bytes; then growth.

    python -m benchmarks.dense_comparison            all tables
    python -m benchmarks.dense_comparison ratios     300 classes x 512-d, 5, 20 and 50 shots, 2,000 queries
    python -m benchmarks.dense_comparison domains    the evidence of HierarchicalHyCal in eight domains, 10 shots
    python -m benchmarks.dense_comparison growth     1k, 10k and 100k classes of 5 shots, 256 queries; needs 8 GB
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.dense_comparison --clock cpu     seconds of one core

The dense loop treats classes one by one, so it is timed on a part of them and scaled up. Every time is the best of a
few runs. Absolute times depend on the machine and on what else it does; the ratios are the result.

"Of bare product" is the speed of scoring against a matrix product alone: first against the one of the textbook low-rank
form, with (sum of K + 3 C) columns, then against the one that scoring really does, with (sum of K + C) columns.

"Domains" compares the evidence of all domains, whitened in one go by the blocks of their triangular factors, with one
domain after the other, and with the bare product by white spaces and classes of all domains composed to one matrix.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import dense_loop
from benchmarks.step import CLOCKS, Problem
from hycal import HierarchicalHyCal, HyCal
from hycal.algebra.hierarchy import DomainGaussians, Reals
from hycal.validation import Floats

CLASSES, WIDTH, QUERIES = 300, 512, 2000
ROUNDS = 5
DENSE_CLASSES = 20  # timed; the rest is the same work again
WANTED = {5: (300, 75, 80), 20: (120, 30, 88), 50: (40, 12, 92)}  # times faster to learn and to score; % of product


def best_of(runs: int, work: Callable[[], object], now: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds of the fastest run."""
    time.sleep(0.3)  # BLAS threads of the last measurement spin on for a while, and would take a core from this one
    times = []
    for _ in range(runs):
        start = now()
        work()
        times.append(now() - start)
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


@dataclass(frozen=True)
class Compared:
    """Seconds of both ways to learn and to score, of two bare products, and bytes: of the dense form, file, memory."""

    dense_learn: float
    learn: float
    dense_score: float
    score: float
    own_product: float
    textbook_product: float
    dense_bytes: int
    stored: int
    held: int


def compare(shots: int, *, rounds: int = ROUNDS, now: Callable[[], float] = time.perf_counter) -> Compared:
    """Measure fast against dense at this many shots."""
    samples, texts, centres = draw(CLASSES, shots)
    rng = np.random.default_rng(1)
    queries = centres[rng.integers(CLASSES, size=QUERIES)] + 0.02 * rng.standard_normal(
        (QUERIES, WIDTH), dtype=np.float32
    )
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    some, scale = range(DENSE_CLASSES), CLASSES / DENSE_CLASSES

    gaussians = [dense_loop.learn_class(samples[c], texts[c], 1e-4) for c in some]
    dense_learn = best_of(2, lambda: [dense_loop.learn_class(samples[c], texts[c], 1e-4) for c in some], now)
    dense_measure = best_of(3, lambda: [dense_loop.measure_class(queries, *gaussians[c], texts[c]) for c in some], now)
    full = rng.standard_normal((2, QUERIES, CLASSES), dtype=np.float32)
    blend = best_of(3, lambda: dense_loop.blend(full[0], full[1], [shots] * CLASSES, 10, 5), now)

    model = learned(samples, texts)
    bank = model.snapshot().value.bank
    own_rows = len(bank.means) + len(bank.lengths) + len(bank.factors)
    products = [rng.standard_normal((rows, WIDTH), dtype=np.float32) for rows in (own_rows, CLASSES * (shots + 3))]
    fast_learn = best_of(3, lambda: learned(samples, texts), now)
    works = [*(partial(np.matmul, queries, matrix.T) for matrix in products), partial(model.decision_function, queries)]
    turns = [[best_of(5, work, now) for work in works] for _ in range(rounds)]  # in turn: other jobs disturb all alike
    own, textbook, fast_score = (min(times) for times in zip(*turns, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        stored = (Path(folder) / "model").stat().st_size
    return Compared(
        scale * dense_learn,
        fast_learn,
        scale * dense_measure + blend,
        fast_score,
        own,
        textbook,
        CLASSES * (WIDTH**2 + WIDTH) * 4,
        stored,
        model.nbytes_ + bank.nbytes,
    )


def ratios(now: Callable[[], float]) -> None:
    """Print fast against dense for each number of shots."""
    print(f"{CLASSES} classes x {WIDTH}-d, {QUERIES} queries; dense = released-style loop, float32, pseudo-inverse")
    print(
        "shots  learning  wanted  scoring  wanted  of the textbook product  of the product that is done  wanted"
        "  file against dense  memory against dense"
    )
    for shots, (learn, score, product) in WANTED.items():
        found = compare(shots, now=now)
        print(
            f"{shots}  {found.dense_learn / found.learn:.0f}x  {learn}x"
            f"  {found.dense_score / found.score:.0f}x  {score}x"
            f"  {100 * found.textbook_product / found.score:.0f}%"
            f"  {100 * found.own_product / found.score:.0f}%  {product}%"
            f"  1/{found.dense_bytes / found.stored:.0f}  1/{found.dense_bytes / found.held:.0f}",
            flush=True,
        )


def domains(now: Callable[[], float]) -> None:
    """Print the milliseconds of the evidence of HierarchicalHyCal, beside other ways to compute it."""
    print("\nevidence of HierarchicalHyCal in eight domains of 10 shots, milliseconds")
    print("classes  queries  all domains at once  one after the other  composed products alone")
    for classes in (224, 1_000):
        problem = Problem.drawn(classes, 10)
        hierarchy = problem.learned_by(HierarchicalHyCal(text="none")).snapshot().value.hierarchy
        wide = 2 * classes + WIDTH * len(hierarchy.domains)
        composed = np.random.default_rng(0).standard_normal((WIDTH, wide), dtype=np.float32)
        for count in (1, 256):
            X = np.resize(problem.queries, (count, WIDTH))
            works: list[Callable[[], object]] = [
                partial(hierarchy.evidence, X),
                partial(one_by_one, hierarchy.domains, X),
                partial(np.matmul, X, composed),
            ]
            spent = [min(best_of(5, work, now) for _ in range(ROUNDS)) for work in works]
            print(f"{classes:,}  {count}  " + "  ".join(f"{1e3 * each:.2f}" for each in spent), flush=True)


def one_by_one(domains: Sequence[DomainGaussians], X: Floats) -> list[tuple[Reals, Reals]]:
    """Return log densities and evidence of each domain, by plain products with its white space and its classes."""
    found: list[tuple[Reals, Reals]] = []
    for domain in domains:
        Z, (A, c) = (X - domain.centre) @ domain.whitening, domain.linear
        found.append((-0.5 * np.sum(Z**2, axis=1) - domain.log_det, Z @ A.transpose(0, 2, 1) + c[:, None]))
    return found


def growth(classes: int) -> None:
    """Print one row: learning and scoring at this many classes."""
    samples, texts, centres = draw(classes, 5)
    start = time.perf_counter()
    model = learned(samples, texts)
    learn_time = time.perf_counter() - start
    del samples, texts
    queries = centres[:256]
    score_time = best_of(3, lambda: model.decision_function(queries))
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
    parser.add_argument("table", nargs="?", choices=["ratios", "domains", "growth"], help="default: all")
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall")
    parser.add_argument("--classes", type=int, help=argparse.SUPPRESS)  # one row of growth, in a process of its own
    options = parser.parse_args()
    if options.classes:
        growth(options.classes)
        return
    if options.table in (None, "ratios"):
        ratios(CLOCKS[options.clock])
    if options.table in (None, "domains"):
        domains(CLOCKS[options.clock])
    if options.table in (None, "growth"):
        print("\nclasses  learn (5 shots)              score 256 queries             held for scoring")
        for classes in (1_000, 10_000, 100_000):
            subprocess.run([sys.executable, "-m", "benchmarks.dense_comparison", "--classes", str(classes)], check=True)


if __name__ == "__main__":
    main()
