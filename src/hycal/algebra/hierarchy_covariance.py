"""Covariance evidence for the classes of a domain: the log density of each class under its own covariance.

The Gaussians of `hycal.algebra.hierarchy` share one covariance in a domain. A class of many samples in few dimensions
knows its own, shrunk to the mean variance within the classes of its domain:

    W_c = (S_c + tau t I)/(v_c + tau)        evidence = -(y'W_c^-1 y + log|W_c/t|)/2 with y = x - mu_c

A sample that is left out leaves the mean and the covariance of its class; t stays. With k = K_c/(K_c - 1),
g = x - mu_c and h = g'(S_c + tau t I)^-1 g, which Q_c(x) gives, y becomes k g, S_c becomes S_c - k g g', and so

    y'W_c^-1 y = (v_c - 1 + tau) k^2 h/(1 - k h)        |S_c + tau t I| falls by the factor 1 - k h

    symbol     field      shape      meaning (domain g of N_g samples and C_g classes, d dimensions)
    K_c, v_c   counts     (C_g,)     samples of a class; v_c = K_c - 1 degrees of freedom
    S_c                   (d, d)     scatter of the class around its mean mu_c; not built while K_c <= d
    tau        strength   scalar     samples that the mean variance is worth to a class
    t                     scalar     mean variance within classes: the mean of S_c over all v_c and dimensions
    Q_c        forms                 y'W_c^-1 y of every class
    log|W_c/t| log_dets   (C_g,)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hycal.algebra.cost import covariance_factor
from hycal.algebra.covariance import NO_SPREAD, class_means, covariance_factors
from hycal.algebra.quadratic_forms import Quadratic, QuadraticBank
from hycal.validation import Doubles, Floats

_STRENGTH = 0.1  # samples per dimension that the mean variance is worth, and one more
_FEWEST = 1 / 8  # samples of a class per dimension, on average: a covariance of fewer says little
_MOST = 4096  # rows of the factors of all covariances: queries are multiplied by them


def covariances_pay(counts: npt.NDArray[np.int64], width: int) -> bool:
    """Whether classes of so many samples each have covariances of their own."""
    rows = int(np.minimum(counts - 1, width).sum())
    return len(counts) > 1 and rows <= _MOST and float(counts.mean()) >= max(_FEWEST * width, 2.0)


def covariance_operations(samples: int, classes: int, width: int, held_out: int) -> float:
    """Return the operations of `ClassCovariances.fit`, and of the evidence of held-out samples."""
    shots = samples // max(classes, 1)
    if not covariances_pay(np.full(classes, shots), width):
        return 0.0
    return classes * (covariance_factor(shots, width) + 2.0 * held_out * min(shots - 1, width) * width)


@dataclass(frozen=True, eq=False)
class ClassCovariances:
    """The covariances of the classes of one domain. The table above describes the fields."""

    counts: npt.NDArray[np.int64]
    strength: float
    forms: QuadraticBank
    log_dets: Doubles

    @classmethod
    def fit(cls, samples: Floats, own: npt.NDArray[np.intp]) -> ClassCovariances | None:
        """Return the covariances of samples sorted by class; None where no class has two different samples."""
        counts = np.bincount(own)
        rows = samples.astype(np.float64)
        means = class_means(rows, counts)
        deviations = rows - np.repeat(means, counts, axis=0)
        return cls.of(counts, means, np.split(deviations, np.cumsum(counts)[:-1]))

    @classmethod
    def of(cls, counts: npt.NDArray[np.int64], means: Doubles, parts: Sequence[Doubles]) -> ClassCovariances | None:
        """Return the same from the means of classes, and from rows that have the scatter of each."""
        width = means.shape[1]
        scatter = sum(float(np.sum(part**2)) for part in parts)
        variance = scatter / max(int(counts.sum()) - len(counts), 1) / width
        if variance * width <= NO_SPREAD:
            return None
        tau = 1.0 + _STRENGTH * width
        classes = zip(means, parts, (counts - 1).tolist(), strict=True)
        forms, log_dets = zip(*(_form(*one, tau, variance) for one in classes), strict=True)
        return cls(counts, tau, QuadraticBank.of(forms), np.array(log_dets))

    def __call__(self, X: Floats) -> Floats:
        """Return the evidence of queries, (n, C_g)."""
        return self._evidence(self.forms(X), self.log_dets)

    def without_each(self, X: Floats, own: npt.NDArray[np.intp]) -> Floats:
        """Return the evidence, (n, C_g), of learned samples of the classes `own`, each without itself."""
        Q, log_dets = self.forms(X), np.tile(self.log_dets, (len(X), 1))
        at, width = (np.arange(len(X)), own), X.shape[1]
        K, weight = self.counts[own], self.counts[own] - 1.0 + self.strength
        k = K / (K - 1.0)
        left = 1.0 - k * Q[at] / weight  # 1 - k h
        Q[at] = (weight - 1.0) * k**2 * (Q[at] / weight) / left
        log_dets[at] += np.log(left) - width * np.log((weight - 1.0) / weight)
        return self._evidence(Q, log_dets)

    @staticmethod
    def _evidence(Q: Doubles, log_dets: Doubles) -> Floats:
        return (-0.5 * (Q + log_dets)).astype(np.float32)


def _form(mean: Doubles, deviations: Doubles, freedom: int, tau: float, variance: float) -> tuple[Quadratic, float]:
    """Return Q_c and log|W_c/t| of one class."""
    width = len(mean)
    # S_c + tau t I is the regularised covariance of the rows times their number less 1, if there is one.
    W = covariance_factors(deviations[None], float(len(deviations) - 1), tau * variance)[0]
    scale = (freedom + tau) / (tau * variance)
    log_det = width * np.log(tau / (freedom + tau)) - float(np.sum(np.log1p(-np.sum(W**2, axis=1))))
    return Quadratic(mean, np.full(width, scale), np.sqrt(scale) * W, -np.ones(len(W))), log_det
