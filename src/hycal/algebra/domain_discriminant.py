"""Quadratic discriminants of classes that share one covariance in each domain, shrunk to that of all domains.

    Sigma_g = (S_g + k Sigma)/(f_g + k),  Sigma = S/f
    s_c = w (-(x - mu_c)'P_g (x - mu_c) + log|P_g|)/2,  P_g = (Sigma_g + r_g I)^-1,  g the domain of c

With one domain Sigma_g is Sigma, and the scores rank classes as those of `discriminant` do.

    symbol    shape         meaning (C classes, G domains)
    S_g, S    (d, d)        within-class scatter of a domain, and their sum
    f_g, f    scalar        samples less classes, of a domain and of all, f at least 1
    k         scalar        strength: samples that Sigma counts for
    r_g       (G,)          ridge
    w         scalar        weight
    V_g       (G, d, d)     factor, P_g = V_g V_g'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, solve_triangular

from hycal.algebra.discriminant import WithinClass, sealed_freedom
from hycal.algebra.features import LinearHead
from hycal.parallel.threads import map_rows
from hycal.state.sealed import SealedRecords
from hycal.validation import Doubles, Floats


def domain_covariances(
    within: WithinClass, counts: npt.NDArray[np.int64], groups: npt.NDArray[np.intp], strength: float
) -> list[Doubles]:
    """Return Sigma_g of every domain; class c has `counts[c]` rows of `within` and belongs to domain `groups[c]`."""
    own = np.repeat(groups, counts)
    parts = [within.deviations[own == g] for g in range(groups.max() + 1)]
    classes = np.bincount(groups[counts > 0], minlength=len(parts))
    freedoms = [len(part) - number for part, number in zip(parts, classes, strict=True)]
    return _shrunk([part.T @ part for part in parts], freedoms, within.freedom, strength)


def sealed_covariances(table: SealedRecords, strength: float) -> list[Doubles]:
    """Return Sigma_g of every group of a sealed model."""
    spreads = table.group_spreads
    freedoms = [spread.freedom for spread in spreads]
    return _shrunk([spread.scatter for spread in spreads], freedoms, sealed_freedom(table), strength)


def _shrunk(scatters: Sequence[Doubles], freedoms: Sequence[int], freedom: int, strength: float) -> list[Doubles]:
    pooled = np.sum(scatters, axis=0) / freedom
    return [(S + strength * pooled) / (f + strength) for S, f in zip(scatters, freedoms, strict=True)]


@dataclass(frozen=True, eq=False)
class DomainDiscriminants:
    """The discriminant as a linear head less half a square for each domain."""

    head: LinearHead  # weights w P_g mu_c, bias w (log|P_g| - mu_c'P_g mu_c)/2
    factors: Doubles  # (G, d, d): sqrt(w) V_g
    groups: npt.NDArray[np.intp]  # (C,): g of each class

    @classmethod
    def of(
        cls, means: Doubles, groups: npt.NDArray[np.intp], covariances: Sequence[Doubles], weight: float
    ) -> DomainDiscriminants:
        """Build the discriminant from the means and the regularised covariance of every domain."""
        factors = np.empty((len(covariances), *covariances[0].shape))
        logs = np.empty(len(covariances))
        for g, covariance in enumerate(covariances):
            L = cholesky(covariance, lower=True, check_finite=False)
            inverse = solve_triangular(L, np.eye(len(L)), lower=True, check_finite=False)
            factors[g], logs[g] = np.sqrt(weight) * inverse.T, -2.0 * np.sum(np.log(np.diag(L)))
        weights = np.empty_like(means)
        for g, V in enumerate(factors):
            weights[groups == g] = means[groups == g] @ V @ V.T
        bias = 0.5 * (weight * logs[groups] - np.einsum("cd,cd->c", weights, means))
        return cls(LinearHead.on_embeddings(weights, bias), factors, groups)

    def __call__(self, X: Floats, columns: npt.NDArray[np.intp] | None = None) -> Doubles:
        """Return (n, C) scores, or those of the classes at `columns`."""

        def squares(rows: Doubles) -> Doubles:
            return np.stack([np.sum((rows @ V) ** 2, axis=1) for V in self.factors], axis=1)

        halves = 0.5 * map_rows(squares, X, width=len(self.factors), numbers_per_row=2 * X.shape[1])
        return self.head(X, columns) - halves[:, self.groups if columns is None else self.groups[columns]]
