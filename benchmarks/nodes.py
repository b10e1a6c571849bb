"""A million classes, simulated: ten nodes with 100,000 classes each, one after the other on this machine.

    python -m benchmarks.nodes                            ten nodes of 100,000 classes; 4 GB, some minutes
    python -m benchmarks.nodes --nodes 4 --classes 2500   smaller

Every node learns its own classes and measures all queries. HyCal's z-scores are over all classes of all nodes, so the
nodes exchange count, mean and squared deviation of their two measures, and then their best class: the answer is that of
one machine with all classes (`benchmarks.scale` compares, at sizes that one machine holds). Times are those of a node,
on the cores of this machine; "sent" is what a node sends for each query. Accuracy is that of the whole.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hycal import HyCal
from hycal.algebra.scores import blend_log_odds
from hycal.state.records import ClassRecord, Records
from hycal.state.samples import ClassSamples
from hycal.validation import Doubles, Floats, Label

WIDTH, SHOTS = 512, 5
SPREAD, NOISE = 0.5, 0.04  # of classes around their superclass, of samples around their class
QUERIES = 64


def noise(rng: np.random.Generator, *shape: int) -> Floats:
    """Draw from the normal distribution."""
    return rng.standard_normal(shape, dtype=np.float32)


def unit(rows: Floats) -> Floats:
    """Scale rows to length one, in place."""
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows


def superclasses(rng: np.random.Generator) -> Floats:
    """Draw the centres of what classes are near to."""
    return 1.5 + noise(rng, 100, WIDTH)


def draw(rng: np.random.Generator, above: Floats, classes: int) -> tuple[Records, Floats]:
    """Draw classes with their samples and texts, and the centres of the classes."""
    centres = unit(above[rng.integers(len(above), size=classes)] + SPREAD * noise(rng, classes, WIDTH))
    texts = unit(centres + NOISE * noise(rng, classes, WIDTH))
    records: dict[Label, ClassRecord] = {
        f"class {number:07d}": ClassRecord(
            ClassSamples.of(unit(centres[number] + NOISE * noise(rng, SHOTS, WIDTH))), "", texts[number]
        )
        for number in range(classes)
    }
    return Records(records), centres


@dataclass(frozen=True, eq=False)
class Moments:
    """What a node tells of cosine and distance: the classes, and mean and squared deviation, (2, n), of n queries."""

    count: int
    means: Doubles
    squares: Doubles

    @classmethod
    def of(cls, measures: Sequence[Floats]) -> Moments:
        """Take them of (C, n) measures."""
        means = np.array([scores.mean(axis=0, dtype=np.float64) for scores in measures])
        squares = [((scores - mean) ** 2).sum(axis=0) for scores, mean in zip(measures, means, strict=True)]
        return cls(len(measures[0]), means, np.array(squares))

    @property
    def nbytes(self) -> int:
        """What is sent."""
        return self.means.nbytes + self.squares.nbytes

    @property
    def spreads(self) -> Doubles:
        """Standard deviations."""
        return np.asarray(np.sqrt(self.squares / (self.count - 1)))


def joint(parts: Sequence[Moments]) -> Moments:
    """Return the moments over the classes of all nodes."""
    counts = np.array([part.count for part in parts])[:, None, None]
    means = np.array([part.means for part in parts])
    mean = (counts * means).sum(axis=0) / counts.sum()
    squares = np.sum([part.squares for part in parts], axis=0) + (counts * (means - mean) ** 2).sum(axis=0)
    return Moments(int(counts.sum()), mean, squares)


def best(measures: Sequence[Floats], whole: Moments, weights: Doubles) -> tuple[Doubles, np.ndarray]:
    """Return a node's best score of each query, and the row of its class."""
    z = [
        ((scores - mean) / spread).astype(np.float32)
        for scores, mean, spread in zip(measures, whole.means, whole.spreads, strict=True)
    ]
    scores = blend_log_odds(z[0], z[1], weights)
    rows = scores.argmax(axis=0)
    return scores[rows, np.arange(scores.shape[1])].astype(np.float64), rows


def simulate(nodes: int, classes: int) -> None:
    """Print a row for each node, and then the whole."""
    above = superclasses(np.random.default_rng(0))
    # The queries come first, so that no node need be kept: some of each, drawn as the node will draw its classes.
    asked = np.random.default_rng([0, nodes]).integers(classes, size=(nodes, -(-QUERIES // nodes)))
    centres = [_centres(node, above, classes)[asked[node]] for node in range(nodes)]
    rng = np.random.default_rng(1)
    X = unit(np.concatenate(centres) + NOISE * noise(rng, asked.size, WIDTH))
    print("nodes, one after the other")
    print(f"{'node':>6}{'classes':>10}{'derive':>10}{f'{len(X)} queries':>12}{'held':>10}", flush=True)
    parts, kept = [], []
    for node in range(nodes):
        records, _ = draw(np.random.default_rng([0, node]), above, classes)
        model = HyCal().with_records(records)
        start = time.perf_counter()
        bank = model.snapshot().value.bank.whole
        middle = time.perf_counter()
        measures = [scores.copy() for scores in bank.evaluate(X)]
        end = time.perf_counter()
        held = model.nbytes_ + bank.nbytes
        print(
            f"{node:6d}{classes:10,}{middle - start:8.1f} s{end - middle:10.2f} s{held / 1e9:7.2f} GB",
            flush=True,
        )
        parts.append(Moments.of(measures))
        kept.append((bank.order, measures, model.weights(bank.counts)))
        del records, model, bank
    start = time.perf_counter()
    whole = joint(parts)
    scores, rows = zip(*(best(measures, whole, weights) for _, measures, weights in kept), strict=True)
    winner = np.argmax(scores, axis=0)
    found = np.array([kept[node][0][rows[node][query]] for query, node in enumerate(winner)])
    right = (winner == np.repeat(np.arange(nodes), asked.shape[1])) & (found == asked.ravel())
    sent = parts[0].nbytes / len(X) + 16
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{nodes * classes:,} classes: {100 * right.mean():.1f}% right, {sent:.0f} bytes sent by a node for a query, "
        f"joined in {time.perf_counter() - start:.2f} s; peak here {peak:.1f} GB"
    )


def _centres(node: int, above: Floats, classes: int) -> Floats:
    """Return the centres that `draw` gives this node, without its samples."""
    rng = np.random.default_rng([0, node])
    return unit(above[rng.integers(len(above), size=classes)] + SPREAD * noise(rng, classes, WIDTH))


def main() -> None:
    """Simulate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--classes", type=int, default=100_000, help="of each node")
    options = parser.parse_args()
    simulate(options.nodes, options.classes)


if __name__ == "__main__":
    main()
