"""Gaussians of classes in domains: each class is shrunk to its domain, and each domain to all data.

All data give W0 and B. A domain has W_g = (S_g + tau W0)/(v_g + tau). A class of K samples has the posterior mean
m_g + B (B + W0/K)^-1 (mu_c - m_g): in the basis in which W0 = I and B = diag(b), each coordinate of mu_c - m_g is
multiplied by K b/(K b + 1). In the white space z = (x - m_g) W_g^-1/2 of a domain there are two kinds of evidence for a
class, and the log density q of the domain's covariance:

    distance  z.s_c - |s_c|^2/2        direction  r_g z.u_c        q = -|z|^2/2 - log|W_g|/2

q + distance is the log density of the class.

    symbol      field            shape     meaning (d dimensions, C classes, C_g classes in domain g)
    W0          Prior.within     (d, d)    pooled within-class covariance, (1 - e) S/v + e t I
    S, v, t                                scatter of all data within classes, its degrees of freedom, its mean variance
    e, tau      Prior.strength   scalars   share of the identity in W0; number of samples that W0 is worth to a domain
    B                            (d, d)    covariance of class means around the means of their domains
    b           Prior.between    (d,)      diagonal of B in the basis that whitens W0 and diagonalises B
    S_g, v_g                               scatter within the classes of domain g, its degrees of freedom
    W_g                          (d, d)    within-class covariance of domain g; v_g + tau is its `weight`
    W_g^-1/2    whitening        (d, d)    x W_g^-1/2 has the covariance I within classes
    m_g         centre           (d,)      mean of the class means of domain g
    mu_c        Hierarchy.means  (C, d)    class means; `offsets` are mu_c - m_g
    s_c         posterior        (C_g, d)  posterior mean in white space
    u_c                          (C_g, d)  direction of `plain`, the white offset of the plain mean
    r_g         radius           scalar    root mean square of |s_c|
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.algebra.cholesky import times_upper
from hycal.algebra.covariance import directions
from hycal.validation import Doubles

_BLOCKS = 8  # of dimensions

Reals = npt.NDArray[np.floating[Any]]  # float64 while fitting, float32 while scoring


@dataclass(frozen=True, eq=False)
class Prior:
    """Global prior: pooled within-class covariance W0, and the basis that whitens it and diagonalises B."""

    within: Doubles  # (d, d): W0
    strength: float  # tau
    influence: float  # weight of the scatter of a sample of domain g in S_g + tau W0: 1 in S_g, the rest through W0
    # (d, d): row vectors times these go to the basis and back.
    to_basis: Reals
    from_basis: Reals
    between: Reals  # (d,): b
    freedom: float  # class means that B is worth, its isotropic part included
    ridge: float  # e

    def posterior(self, offsets: Reals, counts: npt.NDArray[np.int64]) -> Reals:
        """Return posterior means minus m_g from plain means minus m_g, for classes of `counts` samples."""
        Kb = counts[:, None] * self.between
        return ((offsets @ self.to_basis) * (Kb / (Kb + 1.0))) @ self.from_basis

    def in_float32(self) -> Prior:
        """Return the same prior with its basis in float32, for scoring."""
        names = "to_basis", "from_basis", "between"
        parts: dict[str, Any] = {name: getattr(self, name).astype(np.float32) for name in names}
        return replace(self, **parts)


@dataclass(frozen=True, eq=False)
class DomainGaussians:
    """The classes of one domain in its white space."""

    columns: npt.NDArray[np.intp]  # (C_g,): positions of the classes among all classes
    centre: Reals  # (d,): m_g
    whitening: Reals  # (d, d): W_g^-1/2
    log_det: float  # log|W_g|/2
    weight: float  # v_g + tau
    offsets: Reals  # (C_g, d): mu_c - m_g
    shrunk: Reals  # (C_g, d): posterior means minus m_g
    scatter: Doubles  # (d, d): S_g
    plain: Reals  # (C_g, d): (mu_c - m_g) W_g^-1/2
    posterior: Reals  # (C_g, d): s_c
    radius: float  # r_g

    def white(self, X: npt.NDArray[np.floating]) -> Reals:
        """Return z of each row of X."""
        return times_upper(X - self.centre, self.whitening)

    @cached_property
    def linear(self) -> tuple[Reals, Reals]:
        """A, (2, C_g, d), and c, (2, C_g): the evidence is A z + c."""
        squares = np.sum(self.posterior**2, axis=1)
        u = directions(self.plain.astype(np.float64)).astype(self.plain.dtype)
        return np.stack([self.posterior, self.radius * u]), np.stack([-0.5 * squares, np.zeros_like(squares)])


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The prior, all domains, the number of the domain of each class, and the plain class means mu_c."""

    prior: Prior
    domains: tuple[DomainGaussians, ...]
    domain_of: npt.NDArray[np.intp]
    means: Reals

    @property
    def sizes(self) -> list[int]:
        """C_g of each domain."""
        return [len(domain.columns) for domain in self.domains]

    @property
    def numbers_per_row(self) -> int:
        """How many numbers the evidence of a query makes."""
        return len(self.domains) * len(self.domains[0].centre) + 3 * len(self.domain_of)

    def evidence(self, X: npt.NDArray[np.floating]) -> tuple[Reals, list[Reals]]:
        """Return q, (n, G), and the evidence for classes by distance and direction, (2, n, C_g) of each domain."""
        n, G, d = len(X), len(self.domains), X.shape[1]
        Z = np.empty((n, G, d), np.result_type(X, np.float32))
        for block, whitening, centres in self._whitening:
            white = X[:, : block.stop] @ whitening
            np.subtract(white.reshape(n, G, -1), centres, out=Z[:, :, block])
        q = -0.5 * np.einsum("ngd,ngd->ng", Z, Z)
        q -= np.array([domain.log_det for domain in self.domains])
        parts = [domain.linear for domain in self.domains]
        return q, [Z[:, number] @ A.transpose(0, 2, 1) + c[:, None] for number, (A, c) in enumerate(parts)]

    @cached_property
    def _whitening(self) -> list[tuple[slice, Reals, Reals]]:
        """Blocks of dimensions, and W_g^-1/2 and m_g W_g^-1/2 of all domains, side by side, of each block.

        W_g^-1/2 is upper triangular: a block needs the dimensions up to its end alone, which saves 7/16 of the work.
        """
        edges = np.linspace(0, len(self.domains[0].centre), _BLOCKS + 1).astype(int).tolist()
        centres = np.stack([domain.centre.astype(np.float64) @ domain.whitening for domain in self.domains])
        blocks = [slice(start, end) for start, end in pairwise(edges) if start < end]
        return [
            (
                block,
                np.concatenate([domain.whitening[: block.stop, block] for domain in self.domains], axis=1),
                centres[:, block].astype(np.float32),
            )
            for block in blocks
        ]
