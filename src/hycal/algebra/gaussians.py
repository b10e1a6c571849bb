"""Gaussians of classes in float64: the numbers that `hycal.algebra.bank` packs.

The covariance S around the mean direction mu is S_m + kappa mu mu'. The covariance S_m around the plain mean m has rank
K - 1. So the inverse of R = a S + delta I needs a factor W of S_m, and one correction of rank one (Sherman and
Morrison). The squared Mahalanobis distance of a unit vector z is

    delta (z - mu)' R^-1 (z - mu) = |z - mu|^2 - |W (z - mu)|^2 - g (h.(z - mu))^2
                                  = 1 + |mu|^2 - b^2 - 2 h.z - |W z|^2 - g (h.z - h.mu)^2
                                  = c0 - |W z|^2 - (c1 + c2 h.z) h.z.

Around the plain mean, S is S_m and there is no correction; the distance to m = rho mu has the same form:

    delta (z - m)' R^-1 (z - m) = 1 + rho^2 (1 - b^2) - 2 rho h.z - |W z|^2.

Any rotation of the rows of W gives the same W'W. The rows are reflected until W mu lies along the first one, with entry
b, so that h.z = mu.z - b (W z)_1 costs no further inner product.

    symbol      shape         meaning (B classes of K samples, embeddings of width d, fused pairs of width D)
    v           (B, K, d)     image embeddings of the samples
    t           (B, 1, d)     text embedding of the class
    z           (B, K, D)     v fused with t
    m, rho      (B, D), (B,)  mean of z, and its length
    mu          (B, D)        m / rho
    S_m, S                    covariance of z around m and around mu; neither is built
    kappa       (B,)          K/(K-1) (1 - rho)^2
    a, delta    scalars       R = a S + delta I
    W           (B, r, D)     (a S_m + delta I)^-1 = (I - W'W)/delta, with r = min(K - 1, D)
    b           (B,)          W mu = (b, 0, ..., 0)
    h           (B, D)        mu - W'W mu
    g           (B,)          q/(1 + q h.mu), with q = a kappa/delta
    c0, c1, c2  (B,)          coefficients of the distance as a polynomial in h.z
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hycal.algebra.covariance import covariance_factors, directions
from hycal.algebra.fusion import Fusion
from hycal.state.records import ClassRecord
from hycal.validation import Doubles


@dataclass(frozen=True)
class GaussianOptions:
    """How Gaussians are built."""

    fusion: Fusion  # of image and text
    # R = a S + delta I.
    a: float
    delta: float
    centre: str = "direction"  # the centre of a class: mu, of unit length, or the plain mean m


@dataclass(frozen=True, eq=False)
class ClassGaussians:
    """Gaussians of B classes with the same number of samples."""

    t: Doubles  # (B, 1, d): zero where the fusion uses no text
    mu: Doubles  # (B, D)
    W: Doubles  # (B, r, D)
    terms: Doubles  # (B, 4): c0, c1, c2 and b

    @classmethod
    def of(cls, members: Sequence[ClassRecord], options: GaussianOptions) -> ClassGaussians:
        """Compute the Gaussians of `members`, which all have the same number of samples."""
        z, t = _fused(members, options.fusion)
        m = z.mean(axis=1)
        rho = np.linalg.norm(m, axis=1)
        mu = directions(m)
        W, b = _reflected(covariance_factors(z - m[:, None], options.a, options.delta), mu)
        if options.centre == "mean":
            return cls(t, mu, W, np.stack([1.0 + rho**2 * (1.0 - b**2), 2.0 * rho, np.zeros_like(b), b], axis=1))
        h = mu - (b[:, None] * W[:, 0] if W.shape[1] else 0.0)
        q = options.a * _kappa(members[0].count, rho) / options.delta
        return cls(t, mu, W, _terms(mu, b, h, q))


def _fused(members: Sequence[ClassRecord], fusion: Fusion) -> tuple[Doubles, Doubles]:
    """Return z and t. The text of a class without samples stands in for its image.

    Sealed classes have rows of the same mean and covariance in place of v, or of z where that is not linear in v.
    """
    width = fusion.width(members[0].samples.rows.shape[1])
    rows = [member.samples.rows if member.moments is None else member.moments.rows(width) for member in members]
    v: Doubles = np.stack(rows).astype(np.float64)
    t = np.zeros((len(members), 1, v.shape[2]))
    if fusion.needs_text:
        t[:, 0] = [member.text for member in members]
    if members[0].moments is not None and fusion.fixed_length is None:
        return v, t
    return fusion.fuse(v if v.size else t, t), t


def _kappa(K: int, rho: Doubles) -> Doubles:
    """Return kappa; one sample has no covariance around its mean."""
    return K / (K - 1) * (1.0 - rho) ** 2 if K > 1 else np.zeros_like(rho)


def _terms(mu: Doubles, b: Doubles, h: Doubles, q: Doubles) -> Doubles:
    """Return c0, c1, c2 and b as columns."""
    h_mu = np.sum(h * mu, axis=1)
    g = q / (1.0 + q * h_mu)
    c0 = 1.0 + np.sum(mu**2, axis=1) - b**2 - g * h_mu**2
    return np.stack([c0, 2.0 - 2.0 * g * h_mu, g, b], axis=1)


def _reflected(W: Doubles, mu: Doubles) -> tuple[Doubles, Doubles]:
    """Reflect the rows of each W so that W mu = (b, 0, ..., 0); return the reflected W, and b."""
    W_mu = (W @ mu[:, :, None])[:, :, 0]
    if not W_mu.shape[1]:
        return W, np.zeros(len(mu))
    b = -np.copysign(np.linalg.norm(W_mu, axis=1), W_mu[:, 0])  # with this sign the next subtraction cannot cancel
    normal = W_mu.copy()
    normal[:, 0] -= b
    squares = np.maximum(np.sum(normal**2, axis=1), np.finfo(np.float64).tiny)
    along = (normal[:, None] @ W)[:, 0]
    reflected: Doubles = W - (2.0 / squares)[:, None, None] * normal[:, :, None] * along[:, None]
    return reflected, b
