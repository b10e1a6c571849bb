"""Mutual information from samples, by nearest neighbours, in nats.

Both estimators compare the distance to the k-th neighbour in one space with the number of points within it in another
(Kraskov, Stögbauer and Grassberger, 2004; Ross, 2014, where one side is a label). Mutual information does not change
under monotone maps, so every column is first mapped to normal scores by rank; then distances of two measures compare.

Their bias is small and of either sign where the truth is near zero (an estimate may be negative), and downward where
the truth is large: two variables that determine each other have infinite information, and the estimate only grows with
the logarithm of the sample size. A second column costs accuracy too. So a figure stands beside a control in which the
column in question is shuffled, and only what exceeds the control means anything.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree
from scipy.special import digamma, ndtri
from scipy.stats import rankdata

from hycal.validation import Doubles

NEIGHBOURS = 5


def normal_scores(x: npt.ArrayLike) -> Doubles:
    """Return `x` mapped by rank to the quantiles of a Gaussian, column by column; equal values stay equal."""
    ranks = rankdata(np.asarray(x, np.float64), axis=0)
    return ndtri((ranks - 0.5) / len(ranks))


def with_label(label: npt.NDArray[np.bool_], *evidence: npt.ArrayLike) -> float:
    """Return the estimate of I(L; evidence), L being a yes-or-no label and the evidence one or more columns."""
    points = normal_scores(np.stack([np.asarray(column) for column in evidence], axis=1))
    everything = cKDTree(points)
    within = np.empty(len(points))
    sizes = np.empty(len(points))
    for value in (False, True):
        own = np.flatnonzero(label == value)
        within[own] = _closer(everything, points[own], _reach(points[own]))
        sizes[own] = len(own)
    terms = digamma(len(points)) + digamma(NEIGHBOURS) - digamma(sizes) - digamma(within)
    return float(terms.mean())


def between(one: npt.ArrayLike, other: npt.ArrayLike) -> float:
    """Return the estimate of I(one; other) of two columns."""
    x, y = normal_scores(one)[:, None], normal_scores(other)[:, None]
    reach = _reach(np.hstack([x, y]))
    counts = [_closer(cKDTree(side), side, reach) for side in (x, y)]
    return float(digamma(len(x)) + digamma(NEIGHBOURS) - np.mean(digamma(counts[0]) + digamma(counts[1])))


def _reach(points: Doubles) -> Doubles:
    """Return how far the k-th neighbour of each point is, in the maximum norm."""
    distances: Doubles = np.asarray(cKDTree(points).query(points, k=NEIGHBOURS + 1, p=np.inf)[0])
    return distances[:, -1]


def _closer(tree: cKDTree, points: Doubles, reach: Doubles) -> Doubles:
    """Return how many points of the tree lie nearer than `reach` to each of `points`, itself included."""
    counts = tree.query_ball_point(points, np.nextafter(reach, 0), p=np.inf, return_length=True)
    return np.asarray(counts, dtype=np.float64)


def between_given(one: npt.ArrayLike, other: npt.ArrayLike, label: npt.NDArray[np.bool_]) -> float:
    """Return the estimate of I(one; other | L)."""
    x, y = np.asarray(one), np.asarray(other)
    parts = (label, ~label)
    return sum(float(part.mean()) * between(x[part], y[part]) for part in parts)
