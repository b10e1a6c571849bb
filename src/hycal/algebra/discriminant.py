"""Linear discriminants of classes that share one covariance.

With mu_c the class means and S the within-class scatter, the score mu_c' P x - mu_c' P mu_c / 2 with P = (S + r I)^{-1}
ranks classes as the distance (x - mu_c)' P (x - mu_c) does. S is never needed where samples are fewer than features:
with B the centred samples, S = B'B and P = (I - B' (B B' + r I)^{-1} B) / r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from hycal.algebra.features import Features, LinearHead
from hycal.algebra.ridge import gram_matrix, solve_ridge
from hycal.validation import Doubles

NO_SPREAD = 1e-10  # mean squared deviation of samples that differ by rounding alone
_ROUNDING = 1e-12


def class_means(rows: npt.NDArray[np.floating], counts: npt.NDArray[np.int64]) -> Doubles:
    """Return the means of rows that are sorted by class, `counts[c]` > 0 of class c, shape (C, d)."""
    means, stops = np.empty((len(counts), rows.shape[1])), np.cumsum(counts)
    # Class by class: np.add.reduceat takes seven times as long.
    for mean, start, stop in zip(means, stops - counts, stops, strict=True):
        np.add.reduce(rows[start:stop], axis=0, dtype=np.float64, out=mean)
    means /= counts[:, None]
    return means


@dataclass(frozen=True, eq=False)
class WithinClass:
    """Class means, shape (C, D), and the samples less the mean of their class, shape (N, D)."""

    means: Doubles
    deviations: Doubles

    @classmethod
    def of(cls, rows: npt.NDArray[np.floating], counts: npt.NDArray[np.int64]) -> WithinClass:
        """Centre rows that are sorted by class, `counts[c]` > 0 of class c."""
        deviations = rows.astype(np.float64)
        means = class_means(deviations, counts)
        deviations -= np.repeat(means, counts, axis=0)
        return cls(means, deviations)

    @property
    def scatter_trace(self) -> float:
        """tr S."""
        return float(np.einsum("nd,nd->", self.deviations, self.deviations))

    @property
    def freedom(self) -> int:
        """N - C, at least 1."""
        return max(len(self.deviations) - len(self.means), 1)

    def leave_one_out(
        self, rows: npt.NDArray[np.floating], own: npt.NDArray[np.intp], counts: npt.NDArray[np.int64], P: Precision
    ) -> Doubles:
        """Return the scores of `discriminant` for samples, each without itself, up to a gain.

        Without the sample x of a class of n, with d = x - mu_own, the scatter is S - n/(n-1) dd' and its precision
        P + k P dd'P by Sherman and Morrison, k = a/(1 - a d'Pd), a = n/(n-1); the mean is mu_own - d/(n-1).
        """
        each = np.arange(len(rows))
        G, MM, q, xPx = P.products(rows, self.means, own)
        D = G - MM
        xPd = xPx - G[each, own]
        dPd = xPd - D[each, own]
        a, b = counts / (counts - 1.0), 1.0 / (counts - 1.0)
        k = (a / np.maximum(1.0 - a * dPd, _ROUNDING))[:, None]
        along, squares = G.copy(), q.copy()
        along[each, own] -= b * xPd
        squares[each, own] += b * (b * dPd - 2.0 * D[each, own])
        D[each, own] -= b * dPd
        scores: Doubles = along + k * xPd[:, None] * D - 0.5 * (squares + k * D**2)
        return scores

    def discriminant(self, features: Features, *, ridge: float, gain: float = 1.0) -> LinearHead:
        """Return the head with weights gain (S + ridge I)^{-1} mu_c and the bias that belongs to them."""
        weights = gain * precision_times(self.deviations, ridge, self.means)
        return LinearHead(features, weights, -0.5 * np.einsum("cd,cd->c", weights, self.means))


@dataclass(frozen=True, eq=False)
class Precision:
    """(S + ridge I)^{-1} with one ridge for all samples, or one for each of them."""

    deviations: Doubles
    ridges: float | Doubles

    def products(
        self, X: npt.NDArray[np.floating], M: Doubles, own: npt.NDArray[np.intp]
    ) -> tuple[Doubles, Doubles, Doubles, Doubles]:
        """Return x'P mu_c, mu_own'P mu_c and mu_c'P mu_c, each (n, C), and x'P x, (n,)."""
        if np.ndim(self.ridges) == 0:
            P = precision_times(self.deviations, float(self.ridges), np.concatenate([M, X]))
            PM, PX = P[: len(M)], P[len(M) :]
            between = M @ PM.T
            squares = np.broadcast_to(np.diag(between), (len(X), len(M)))
            return X @ PM.T, between[own], squares, np.einsum("nd,nd->n", X, PX)
        e, V = eigh(gram_matrix(X.shape[1], [self.deviations]), lower=True, overwrite_a=True, check_finite=False)
        inverse = 1.0 / (np.maximum(e, 0.0) + np.asarray(self.ridges)[:, None])
        XV, MV = X @ V, M @ V
        return (
            (XV * inverse) @ MV.T,
            (MV[own] * inverse) @ MV.T,
            inverse @ (MV**2).T,
            np.einsum("nd,nd,nd->n", XV, XV, inverse),
        )


def precision_times(B: Doubles, ridge: float, vectors: Doubles) -> Doubles:
    """Return the rows (B'B + ridge I)^{-1} v of the rows v, in the smaller of two equal forms."""
    form = gram_precision_times if len(B) >= B.shape[1] else dual_precision_times
    return form(B, ridge, vectors)


def gram_precision_times(B: Doubles, ridge: float, vectors: Doubles) -> Doubles:
    """Return them from the scatter matrix, (D, D)."""
    return solve_ridge(gram_matrix(B.shape[1], [B]), ridge, vectors.T).T


def dual_precision_times(B: Doubles, ridge: float, vectors: Doubles) -> Doubles:
    """Return them from the kernel of the centred samples, (N, N)."""
    coefficients = solve_ridge(gram_matrix(len(B), [B.T]), ridge, B @ vectors.T)
    return (vectors - coefficients.T @ B) / ridge
