"""Clusters of embeddings: k-means on directions, best of several starts, the same for the same rows; and distances.

The starts are those of greedy k-means++ from a fixed seed. A centre is the direction of the sum of its rows:

    a_i = argmax_k x_i.c_k        c_k = sum of x_i over a_i = k, scaled to length 1

    symbol    shape   meaning
    x         (n, d)  unit rows
    c         (k, d)  unit centres
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hycal.validation import Floats

NEAR = 0.05  # distance of near-duplicates, as a share of the mean distance; hardly any two other images are nearer
_COPY = 1e-5  # distance of copies: rounding alone
_STARTS = 5
_STEPS = 40
_WORK = 2e8  # similarities for one set of starts; fewer starts where there are more
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Clusters:
    """The cluster of each row, (n,), the unit centres, (k, d), and the mean similarity of a row and its centre."""

    of_row: npt.NDArray[np.intp]
    centres: Floats
    similarity: float


def canonical_order(rows: Floats) -> npt.NDArray[np.intp]:
    """Return an order of the rows that depends on their content alone; equal rows stay in their order."""
    return np.lexsort(rows[:, : min(8, rows.shape[1])].T[::-1])


def mean_distance(rows: Floats) -> float:
    """Return the mean distance 1 - x.y of two unit rows, and a little more than nothing for equal rows."""
    mean = rows.mean(axis=0, dtype=np.float64)
    return max(1.0 - float(mean @ mean), _COPY)


def near_distance(rows: Floats) -> float:
    """Return the distance below which two rows are near-duplicates."""
    return max(NEAR * mean_distance(rows), _COPY)


def k_means(rows: Floats, k: int) -> Clusters:
    """Return `k` clusters of unit rows, or as many as there are different rows, by the best of several starts."""
    rng = np.random.default_rng(0)
    starts = int(np.clip(_WORK / (_STEPS * len(rows) * k), 1, _STARTS))
    found = [_lloyd(rows, _starting_centres(rows, k, rng)) for _ in range(starts)]
    return max(found, key=lambda clusters: clusters.similarity)


def medoids(rows: Floats, clusters: Clusters) -> npt.NDArray[np.intp]:
    """Return the row nearest to the centre of each cluster, the first of equals."""
    similarity = np.einsum("nd,nd->n", rows, clusters.centres[clusters.of_row])
    order = np.lexsort((-similarity, clusters.of_row))
    return order[np.unique(clusters.of_row[order], return_index=True)[1]]


def _starting_centres(rows: Floats, k: int, rng: np.random.Generator) -> Floats:
    """Return the centres of greedy k-means++: of a few rows drawn by their distance, the one that covers most."""
    tries = 2 + int(np.log(k))
    chosen = [int(rng.integers(len(rows)))]
    distance = 1.0 - rows @ rows[chosen[0]]
    for _ in range(min(k, len(rows)) - 1):
        steps = np.cumsum(np.maximum(distance, 0.0), dtype=np.float64)
        if steps[-1] <= _TINY:
            break
        drawn = np.searchsorted(steps, rng.random(tries) * steps[-1]).clip(max=len(rows) - 1)
        candidates = np.minimum(1.0 - rows @ rows[drawn].T, distance[:, None])
        best = int(np.maximum(candidates, 0.0).sum(axis=0, dtype=np.float64).argmin())
        chosen.append(int(drawn[best]))
        distance = candidates[:, best]
    return rows[chosen]


def _lloyd(rows: Floats, centres: Floats) -> Clusters:
    of_row = np.full(len(rows), -1, np.intp)
    for _ in range(_STEPS):
        nearest = (rows @ centres.T).argmax(axis=1)
        if np.array_equal(nearest, of_row):
            break
        of_row = nearest
        centres = _centres(rows, of_row, centres)
    similarity = np.einsum("nd,nd->n", rows, centres[of_row])
    return Clusters(of_row, centres, float(similarity.mean(dtype=np.float64)))


def _centres(rows: Floats, of_row: npt.NDArray[np.intp], old: Floats) -> Floats:
    """Return the direction of the sum of each cluster; an empty cluster keeps its centre."""
    order = np.argsort(of_row, kind="stable")
    found, first = np.unique(of_row[order], return_index=True)
    sums = np.add.reduceat(rows[order], first, axis=0)
    lengths = np.sqrt(np.einsum("kd,kd->k", sums, sums))
    kept = lengths > _TINY
    centres = old.copy()
    centres[found[kept]] = sums[kept] / lengths[kept, None]
    return centres
