"""Linear discriminants of classes that share one covariance.

The score mu_c'P x - mu_c'P mu_c/2 ranks classes as the distance (x - mu_c)'P (x - mu_c) does. S is not built where
samples are fewer than features: P = (I - B'(B B' + r I)^-1 B)/r.

Without a sample x of a class of K, with g = x - mu_own, the scatter is S - a g g' and the class mean is mu_own - b g.
By Sherman and Morrison the precision becomes P + k P g g'P.

    symbol   shape    meaning (N samples and C classes, D features; n samples that are left out one by one)
    mu_c     (C, D)   class means
    B        (N, D)   samples minus the mean of their class
    S        (D, D)   within-class scatter, B'B
    r        scalar   ridge
    P        (D, D)   (S + r I)^-1
    K        (n,)     samples of the class of x, x included
    g        (n, D)   x - mu_own
    a, b     (n,)     K/(K-1) and 1/(K-1)
    k        (n,)     a/(1 - a g'P g)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from hycal.algebra.covariance import class_means
from hycal.algebra.features import Features, LinearHead
from hycal.algebra.ridge import gram_matrix, solve_ridge
from hycal.state.sealed import SealedRecords
from hycal.validation import Doubles

_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class WithinClass:
    """Class means mu_c, (C, D), and centred samples B, (N, D)."""

    means: Doubles
    deviations: Doubles

    @classmethod
    def of(cls, rows: npt.NDArray[np.floating], counts: npt.NDArray[np.int64]) -> WithinClass:
        """Centre rows that are sorted by class; class c has `counts[c]` > 0 rows."""
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
        """Return the scores of `discriminant` for samples `rows`, each without itself, (n, C), up to a gain."""
        at = np.arange(len(rows)), own
        x_P_mu, own_P_mu, mu_P_mu, x_P_x = P.products(rows, self.means, own)
        g_P_mu = x_P_mu - own_P_mu
        x_P_g = x_P_x - x_P_mu[at]
        g_P_g = x_P_g - g_P_mu[at]
        a, b = counts / (counts - 1.0), 1.0 / (counts - 1.0)
        k = (a / np.maximum(1.0 - a * g_P_g, _ROUNDING))[:, None]
        lines, squares = x_P_mu.copy(), mu_P_mu.copy()
        # The mean of the own class moves by -b g.
        lines[at] -= b * x_P_g
        squares[at] += b * (b * g_P_g - 2.0 * g_P_mu[at])
        g_P_mu[at] -= b * g_P_g
        return lines + k * x_P_g[:, None] * g_P_mu - 0.5 * (squares + k * g_P_mu**2)

    def discriminant(self, features: Features, *, ridge: float, gain: float = 1.0) -> LinearHead:
        """Return the head with the weights gain P mu_c and the bias -gain mu_c'P mu_c/2."""
        weights = gain * precision_times(self.deviations, ridge, self.means)
        return LinearHead(features, weights, -0.5 * np.einsum("cd,cd->c", weights, self.means))


@dataclass(frozen=True, eq=False)
class Precision:
    """P = (B'B + r I)^-1 with one ridge r for all samples, or one for each sample."""

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
    """Return P v for each row v, by the smaller of two equal forms."""
    form = gram_precision_times if len(B) >= B.shape[1] else dual_precision_times
    return form(B, ridge, vectors)


def gram_precision_times(B: Doubles, ridge: float, vectors: Doubles) -> Doubles:
    """Return P v from the scatter matrix, (D, D)."""
    return solve_ridge(gram_matrix(B.shape[1], [B]), ridge, vectors.T).T


def dual_precision_times(B: Doubles, ridge: float, vectors: Doubles) -> Doubles:
    """Return P v from the kernel of the centred samples, (N, N)."""
    coefficients = solve_ridge(gram_matrix(len(B), [B.T]), ridge, B @ vectors.T)
    return (vectors - coefficients.T @ B) / ridge


def sealed_within(table: SealedRecords) -> WithinClass:
    """Return class means, and rows that have the scatter of all centred samples."""
    factors = [spread.factor for spread in table.group_spreads]
    return WithinClass(table.means, np.concatenate(factors).astype(np.float64))


def sealed_freedom(table: SealedRecords) -> int:
    """Return the degrees of freedom of all scatters, at least 1.

    They are samples less classes until a class is forgotten: its part of the scatter of its domain stays, and its
    degrees of freedom with it.
    """
    return max(sum(spread.freedom for spread in table.group_spreads), 1)
