"""Relative Mahalanobis distance: how much better a query fits the nearest class than the background.

    (x - m)'P_T(x - m)/2 - min_c (x - mu_c)'P(x - mu_c)/2

Ren et al., A simple fix to Mahalanobis distance for improving near-OOD detection, 2021. Without a learned sample x, W
loses a g g'. By Sherman and Morrison P becomes P + (a/left) P g g'P, and the distance to the own class, whose mean
moves too, is (K/(K-1))^2 g'P g/left. The background loses the same, and its class mean moves by -g/(K-1): its
covariance T becomes T + U M U' with U = (g, mu_c - m), and the Woodbury identity gives the inverse. The level of the
identity in W stays.

    symbol    shape      meaning (n queries or samples, C classes)
    mu_c, m   (C, d)     class means of a `Hierarchy`, and their mean
    W         (d, d)     W0 of the hierarchy with a smaller share of the identity
    P         (d, d)     W^-1
    P_T       (d, d)     (W + covariance of the class means)^-1
    K         (n,)       samples of the class of a learned sample, this one included
    g         (n, d)     the sample minus its class mean
    a         (n,)       K/(K-1) times the weight of a sample's scatter in W
    left      (n,)       1 - a g'P g
    U         (n, 2, d)  g, and mu_c - m of the sample's class
    M         (n, 2, 2)  what a unit of U U' adds to T
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hycal.algebra.cholesky import inverse_factor
from hycal.algebra.hierarchy import Hierarchy
from hycal.algebra.hierarchy_held_out import LEAST_LEFT
from hycal.state.changes import Changes
from hycal.state.selection import Selection
from hycal.validation import Doubles


@dataclass(frozen=True, eq=False)
class RelativeDistance:
    """The relative Mahalanobis distance to the classes of a hierarchy."""

    hierarchy: Hierarchy
    P: Doubles  # (d, d)
    P_T: Doubles  # (d, d)
    sharpening: float  # (1 - ridge of W)/(1 - ridge of W0)

    @classmethod
    def of(cls, hierarchy: Hierarchy, *, ridge: float, hierarchy_ridge: float) -> RelativeDistance:
        """Return the distance with `ridge` as the share of the identity in W; W0 has `hierarchy_ridge`."""
        W0, d = hierarchy.prior.within, len(hierarchy.prior.within)
        level = np.trace(W0) / d
        sharpening = (1.0 - ridge) / (1.0 - hierarchy_ridge)
        W: Doubles = sharpening * (W0 - hierarchy_ridge * level * np.eye(d))
        W.flat[:: d + 1] += ridge * level
        offsets = hierarchy.means - hierarchy.means.mean(axis=0)
        total = W + offsets.T @ offsets / max(len(offsets) - 1, 1)
        return cls(hierarchy, _inverse(W), _inverse(total), sharpening)

    def after(self, changes: Changes, hierarchy: Hierarchy) -> RelativeDistance:
        """Return the distance to the classes of `hierarchy`, which is that after `changes`; P and P_T stay."""
        other = replace(self, hierarchy=hierarchy)
        P_mu, mu_P_mu = self._mean_products
        means = hierarchy.means[changes.fresh]
        fresh = means @ self.P
        vars(other)["_mean_products"] = (
            changes.carried(P_mu, fresh),
            changes.carried(mu_P_mu, np.einsum("cd,cd->c", means, fresh)),
        )
        return other

    def __call__(self, X: Doubles) -> Doubles:
        """Return the relative distance of queries, (n,)."""
        Y = X - self.hierarchy.means.mean(axis=0)
        background: Doubles = np.einsum("nd,nd->n", Y @ self.P_T, Y)
        return 0.5 * (background - self._squares(X).min(axis=1))

    def held_out(self, samples: Selection) -> Doubles:
        """Return the relative distance of learned samples, (n,), each without itself in its class mean and in P."""
        X, K, means = samples.X.astype(np.float64), samples.counts, self.hierarchy.means
        prior = self.hierarchy.prior
        g = X - means[samples.own]
        a = K / (K - 1.0) * (prior.influence - 1.0) / prior.strength * self.sharpening
        g_P = g @ self.P
        g_P_g = np.einsum("nd,nd->n", g_P, g)
        left = np.maximum(1.0 - a * g_P_g, LEAST_LEFT)
        g_P_offsets = np.einsum("nd,nd->n", g_P, X)[:, None] - g_P @ means.T
        squares = self._squares(X) + (a / left)[:, None] * g_P_offsets**2
        squares[samples.each, samples.own] = (K / (K - 1.0)) ** 2 * g_P_g / left
        return 0.5 * (self._background_without(X, g, a, samples) - squares.min(axis=1))

    def _squares(self, X: Doubles) -> Doubles:
        """Return the squared distance of each query to each class, (n, C)."""
        P_mu, mu_P_mu = self._mean_products
        return np.einsum("nd,nd->n", X @ self.P, X)[:, None] - 2.0 * X @ P_mu.T + mu_P_mu

    @cached_property
    def _mean_products(self) -> tuple[Doubles, Doubles]:
        """P mu_c, (C, d), and mu_c'P mu_c, (C,)."""
        P_mu = self.hierarchy.means @ self.P
        return P_mu, np.einsum("cd,cd->c", self.hierarchy.means, P_mu)

    def _background_without(self, X: Doubles, g: Doubles, a: Doubles, samples: Selection) -> Doubles:
        """Return the squared distance of learned samples to m, (n,), each without itself in m and in P_T."""
        means, C, step = self.hierarchy.means, len(self.hierarchy.means), 1.0 / (samples.counts - 1.0)
        m = means.mean(axis=0)
        U = np.stack([g, means[samples.own] - m], axis=1)
        M = np.zeros((len(X), 2, 2))
        M[:, 0, 0] = (1.0 - 1.0 / C) * step**2 / max(C - 1, 1) - a
        M[:, 0, 1] = M[:, 1, 0] = -step / max(C - 1, 1)
        Y = X - m + g * step[:, None] / C
        U_P = U @ self.P_T
        U_P_y = np.einsum("nsd,nd->ns", U_P, Y)[:, :, None]
        solved = np.linalg.solve(np.eye(2) + U_P @ U.transpose(0, 2, 1) @ M, U_P_y)
        change: Doubles = (U_P_y.transpose(0, 2, 1) @ M @ solved)[:, 0, 0]
        return np.einsum("nd,nd->n", Y @ self.P_T, Y) - change


def _inverse(matrix: Doubles) -> Doubles:
    """Return the inverse of a covariance."""
    factor: Any = np.linalg.cholesky(matrix)
    half: Doubles = inverse_factor(factor)
    return half.T @ half
