"""Each sample of a class against the Gaussian of the others, without building those Gaussians.

With m the mean of K samples x, D their deviations from it, T = D'D, and m', mu' the mean and the unit mean without x,

    R' = a/(K-2) (T - K/(K-1) (x - m)(x - m)') + a kappa' mu' mu'' + delta I,      kappa' = (K-1)/(K-2) (1 - |m'|)^2:

the whole class's A = a/(K-2) T + delta I, of which one factor is needed, and two corrections of rank one that the
Woodbury identity takes in. So all K distances of a class cost O(K^2 d) instead of K factorisations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hycal.algebra.bank import Shape
from hycal.algebra.covariance import covariance_factors, directions
from hycal.parallel.threads import side_by_side
from hycal.state.records import ClassRecord
from hycal.validation import Doubles, Floats


def own_without_each(
    members: Sequence[ClassRecord], shape: Shape, *, wanted: npt.NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """Return cosine, and -delta times the squared Mahalanobis distance, of each sample to its class without it.

    Both of shape (N,), class after class; 0 for classes that are not `wanted`, which must have two samples or more.
    """
    ends = np.cumsum([member.count for member in members])
    cosines, closeness = np.zeros(ends[-1], np.float32), np.zeros(ends[-1], np.float32)

    def work(column: int) -> None:
        rows = slice(ends[column] - members[column].count, ends[column])
        cosines[rows], closeness[rows] = _class_without_each(members[column], shape)

    side_by_side(work, wanted.tolist())
    return cosines, closeness


def _class_without_each(member: ClassRecord, shape: Shape) -> tuple[Doubles, Doubles]:
    count = member.count
    samples = member.samples.rows.astype(np.float64)
    text = np.zeros(samples.shape[1]) if member.text is None else member.text.astype(np.float64)
    fused = shape.fusion.fuse(samples, text)
    mean = fused.mean(axis=0)
    others = (count * mean - fused) / (count - 1)
    unit = directions(others)
    cosines = np.sum(fused * unit, axis=1)
    if count == 2:  # one sample is left, which has no spread
        return cosines, -np.sum((fused - unit) ** 2, axis=1)
    return cosines, -_scaled_distances(fused - unit, fused - mean, unit, np.linalg.norm(others, axis=1), shape)


def _scaled_distances(gap: Doubles, deviation: Doubles, unit: Doubles, length: Doubles, shape: Shape) -> Doubles:
    """Return delta q' R'^-1 q of each row q of `gap`, in the terms of the equations above."""
    count, a, delta = len(gap), shape.scale, shape.ridge
    W = covariance_factors(deviation[None], a * (count - 1) / (count - 2), delta)[0]
    sides = np.stack([deviation, unit])
    projected, projected_gap = sides @ W.T, gap @ W.T
    # Inner products in A^-1, times delta.
    gap_gap = np.sum(gap**2, axis=1) - np.sum(projected_gap**2, axis=1)
    side_gap = np.einsum("snd,nd->ns", sides, gap) - np.einsum("snr,nr->ns", projected, projected_gap)
    side_side = np.einsum("snd,tnd->nst", sides, sides) - np.einsum("snr,tnr->nst", projected, projected)
    added = np.empty((count, 2))  # coefficients of the two rank-one terms, over delta
    added[:, 0] = -a / (count - 2) * count / (count - 1) / delta
    added[:, 1] = a * (count - 1) / (count - 2) * (1.0 - length) ** 2 / delta
    system = np.eye(2) + side_side * added[:, None, :]
    solved = np.linalg.solve(system, side_gap[:, :, None])[:, :, 0]
    distances: Doubles = gap_gap - np.sum(side_gap * added * solved, axis=1)
    return distances
