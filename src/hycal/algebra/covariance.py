"""Class means and their directions, and factors of regularised class covariances."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hycal.validation import Doubles

NO_SPREAD = 1e-10  # mean squared deviation of samples that differ by rounding alone


def class_means(rows: npt.NDArray[np.floating], counts: npt.NDArray[np.int64]) -> Doubles:
    """Return the class means, (C, d), of rows that are sorted by class; class c has `counts[c]` > 0 rows."""
    means, stops = np.empty((len(counts), rows.shape[1])), np.cumsum(counts)
    # A loop over classes: np.add.reduceat takes seven times as long.
    for mean, start, stop in zip(means, stops - counts, stops, strict=True):
        np.add.reduce(rows[start:stop], axis=0, dtype=np.float64, out=mean)
    means /= counts[:, None]
    return means


def directions(means: Doubles) -> Doubles:
    """Scale means to unit length; a mean shorter than 1e-12 has no direction and becomes zero."""
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    return np.divide(means, lengths, out=np.zeros_like(means), where=lengths > 1e-12)


def covariance_factors(deviations: Doubles, scale: float, ridge: float) -> Doubles:
    """Return W with R^-1 = (I - W'W)/ridge for R = scale S + ridge I, S the covariance, for a batch of classes.

    `deviations` are samples minus the mean of their class, (B, K, d) for B classes of K samples each. W has the shape
    (B, r, d) with r = min(K - 1, d): deviations sum to zero, so one eigenvalue is zero and its row is left out. For one
    sample S = 0 and r = 0.

    No d x d matrix is built while K <= d. With the deviations D and D D'/(K-1) = Q e Q' the factor is
    W = sqrt(scale/(scale e + ridge)) Q'D/sqrt(K-1). It divides by no eigenvalue, so no rank has to be decided.
    """
    classes, count, width = deviations.shape
    if count == 1:
        return np.empty((classes, 0, width))
    D = deviations / np.sqrt(count - 1)
    if count <= width:
        e, Q = np.linalg.eigh(D @ D.transpose(0, 2, 1))
        e, Q = e[:, 1:], Q[:, :, 1:]
        shrink = np.sqrt(scale / (scale * np.maximum(e, 0.0) + ridge))
        return shrink[:, :, None] * (Q.transpose(0, 2, 1) @ D)
    e, U = np.linalg.eigh(D.transpose(0, 2, 1) @ D)
    e = np.maximum(e, 0.0)
    return np.sqrt(scale * e / (scale * e + ridge))[:, :, None] * U.transpose(0, 2, 1)
