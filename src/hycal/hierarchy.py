"""Gaussians of classes in domains: each class shrunk to its domain, each domain to all data.

All data give the within-class covariance W0 = (1 - e) S/v + e t I, with S the scatter of v degrees of freedom and t its
mean variance, and the covariance B of the class means around the means of their domains. A domain with scatter S_g of
v_g degrees of freedom has W_g = (S_g + tau W0)/(v_g + tau) and the mean m_g of its class means. A class of n samples
has the posterior mean m_g + B (B + W0/n)^{-1} (mu - m_g), that is, in the basis in which W0 = I and B = diag(b),
every coordinate of mu - m_g times n b/(n b + 1).

In the white space z = (x - m_g) W_g^{-1/2} of a domain, with s the posterior mean of a class, u the direction of its
plain mean and r the root mean square of |s| over the domain, there are two kinds of evidence for the class,

    distance  z.s - |s|^2/2        direction  r z.u,

and q = -|z|^2/2 - log|W_g|/2 for the domain: q plus the distance evidence is the log density of the class.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.leave_one_out import Samples
from hycal.parallel import mapped
from hycal.statistics import directions
from hycal.validation import Doubles

Reals = npt.NDArray[np.floating[Any]]  # float32 where samples are scored

_NO_SPREAD = 1e-10  # mean squared deviation of samples that differ by rounding alone
_LEAST_LEFT = 0.05  # of a precision's denominator once a sample is taken away


@dataclass(frozen=True, eq=False)
class Prior:
    """What all data say: W0, and the basis in which it is I and B is diagonal.

    Attributes
    ----------
    within : ndarray of shape (d, d)
        W0; only the lower triangle counts.
    strength : float
        tau, in samples.
    influence : float
        How much of a sample's scatter enters a domain's through W0.
    to_basis, from_basis : ndarrays of shape (d, d)
        Row vectors times these go to the basis and back.
    between : ndarray of shape (d,)
        b.
    """

    within: Doubles
    strength: float
    influence: float
    to_basis: Reals
    from_basis: Reals
    between: Reals
    freedom: float

    def posterior(self, offsets: Reals, counts: npt.NDArray[np.int64]) -> Reals:
        """Return the posterior of class means less their domain's, from the plain ones."""
        nb = counts[:, None] * self.between
        shrunk: Reals = ((offsets @ self.to_basis) * (nb / (nb + 1.0))) @ self.from_basis
        return shrunk

    def posterior_without(self, whole: Reals, offsets: Reals, counts: npt.NDArray[np.int64]) -> Reals:
        """Return the posterior from `offsets`, with B as if they, not `whole`, had been among its class means.

        A class that stands in B by its own mean hardly shrinks towards the others, so a sample that is left out must
        leave B too. B changes by rank two and m B (m B + I)^{-1} = I - (I + m B)^{-1} follows by Woodbury's identity.
        """
        U = np.stack([whole @ self.to_basis, offsets @ self.to_basis], axis=1)
        R = 1.0 / (1.0 + counts.astype(U.dtype)[:, None] * self.between)
        inner = (U * R[:, None]) @ U.transpose(0, 2, 1)
        change = np.einsum("n,ij->nij", self.freedom / counts, np.diag([-1.0, 1.0]))
        coefficients = np.linalg.solve(inner + change, inner[:, :, 1:]).astype(U.dtype)
        kept = U[:, 1] * (1.0 - R) + R * (coefficients.transpose(0, 2, 1) @ U)[:, 0]
        posterior: Reals = kept @ self.from_basis
        return posterior

    def in_float32(self) -> Prior:
        """Return the same, for scoring."""
        names = "to_basis", "from_basis", "between"
        parts: dict[str, Any] = {name: getattr(self, name).astype(np.float32) for name in names}
        return replace(self, **parts)


@dataclass(frozen=True, eq=False)
class DomainGaussians:
    """The classes of one domain in its white space.

    Attributes
    ----------
    columns : ndarray of shape (C_g,)
        Columns of the classes.
    centre : ndarray of shape (d,)
        m_g.
    whitening : ndarray of shape (d, d)
        W_g^{-1/2}.
    log_det : float
        Half of log|W_g|.
    weight : float
        v_g + tau.
    plain, posterior : ndarrays of shape (C_g, d)
        White means less the centre, as they are and shrunk.
    radius : float
        r.
    """

    columns: npt.NDArray[np.intp]
    centre: Reals
    whitening: Reals
    log_det: float
    weight: float
    offsets: Reals
    plain: Reals
    posterior: Reals
    radius: float

    def in_float32(self) -> DomainGaussians:
        """Return the same, for scoring."""
        names = "centre", "whitening", "offsets", "plain", "posterior"
        parts: dict[str, Any] = {name: np.ascontiguousarray(getattr(self, name), np.float32) for name in names}
        return replace(self, **parts)

    def white(self, X: npt.NDArray[np.floating]) -> Reals:
        """Return z of the rows of X."""
        return (X - self.centre) @ self.whitening

    def evidence(self, X: npt.NDArray[np.floating]) -> tuple[Reals, Reals]:
        """Return q, (n,), and the evidence for classes, (2, n, C_g), of queries."""
        Z, (A, c) = self.white(X), self.linear
        return -0.5 * np.einsum("nd,nd->n", Z, Z) - self.log_det, Z @ A.transpose(0, 2, 1) + c[:, None]

    @cached_property
    def linear(self) -> tuple[Reals, Reals]:
        """A, (2, C_g, d), and c, (2, C_g), with evidence A z + c."""
        squares = np.sum(self.posterior**2, axis=1)
        A = np.stack([self.posterior, self.radius * directions(self.plain.astype(np.float64)).astype(self.plain.dtype)])
        return A, np.stack([-0.5 * squares, np.zeros_like(squares)])


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """All domains; the domain of each class, and its plain mean."""

    prior: Prior
    domains: tuple[DomainGaussians, ...]
    domain_of: npt.NDArray[np.intp]
    means: Reals

    def held_out(self, samples: Samples) -> tuple[Reals, Reals]:
        """Return q, (n, G), and evidence, (2, n, C), of samples, each without itself.

        It leaves its class, its domain, and the scatter and class means of all data. What stays is the scale of these
        (t, v, the trace of B), the centre and radius of its domain, and B for other classes than its own.
        """
        q, e = np.empty((len(samples.X), len(self.domains))), np.empty((2, len(samples.X), len(self.domain_of)))
        of = self.domain_of[samples.own]

        def fill(number: int) -> None:
            domain = self.domains[number]
            mine, theirs = np.flatnonzero(of == number), np.flatnonzero(of != number)
            q[mine, number], e[:, mine[:, None], domain.columns] = self.held_out_within(domain, samples.at(mine))
            q[theirs, number], e[:, theirs[:, None], domain.columns] = self._held_out_elsewhere(
                domain, samples.at(theirs)
            )

        mapped(fill, range(len(self.domains)), [len(domain.columns) for domain in self.domains])
        return q, e

    def held_out_within(self, domain: DomainGaussians, samples: Samples) -> tuple[Reals, Reals]:
        """Return q and evidence of samples of this domain."""
        own, n = np.searchsorted(domain.columns, samples.own), samples.counts
        Z, offsets = domain.white(samples.X), domain.offsets[own]
        gap = Z - domain.plain[own]
        m = n.astype(Z.dtype)[:, None]
        without = (m * offsets - (samples.X - domain.centre)) / (m - 1.0)
        form = _Updated.of(gap, n, self.prior.influence, domain.weight, domain.weight - 1.0)
        posterior = self.prior.posterior_without(offsets, without, n - 1) @ domain.whitening
        return form.evidence(domain, Z, (own, domain.plain[own] - gap / (m - 1.0), posterior))

    def _held_out_elsewhere(self, domain: DomainGaussians, samples: Samples) -> tuple[Reals, Reals]:
        """Return q and evidence of samples of other domains, which are in this one's covariance through W0 alone."""
        gap = (samples.X - self.means[samples.own]) @ domain.whitening
        form = _Updated.of(gap, samples.counts, self.prior.influence - 1.0, domain.weight, domain.weight)
        return form.evidence(domain, domain.white(samples.X), None)


@dataclass(frozen=True, eq=False)
class _Updated:
    """White space without a sample: inner products scale (x.y + k (g.x)(g.y)), by Sherman and Morrison, for each.

    Attributes
    ----------
    scale : float
    k, left : ndarrays of shape (n,)
        `left` is what is left of the determinant, but for the scale.
    g : ndarray of shape (n, d)
        The white sample less the mean of its class.
    """

    scale: float
    k: Reals
    g: Reals
    left: Reals

    @classmethod
    def of(cls, gap: Reals, counts: npt.NDArray[np.int64], influence: float, weight: float, after: float) -> _Updated:
        """Take n/(n-1) `influence` gg' from a scatter that was divided by `weight`, and divide by `after`."""
        a = (counts / (counts - 1.0) * influence / weight).astype(gap.dtype)
        left = np.maximum(1.0 - a * np.einsum("nd,nd->n", gap, gap), _LEAST_LEFT)
        return cls(after / weight, a / left, gap, left)

    def evidence(
        self, domain: DomainGaussians, Z: Reals, own: tuple[npt.NDArray[np.intp], Reals, Reals] | None
    ) -> tuple[Reals, Reals]:
        """Return q and evidence; `own` says where each sample's class is, and its plain and posterior mean now."""
        along, squares = self.with_rows(Z, domain.posterior), self.squares_of(domain.posterior)
        directed, lengths = self.with_rows(Z, domain.plain), self.squares_of(domain.plain)
        if own is not None:
            at, plain, posterior = (np.arange(len(Z)), own[0]), own[1], own[2]
            along[at], squares[at] = self.pairs(Z, posterior), self.pairs(posterior, posterior)
            directed[at], lengths[at] = self.pairs(Z, plain), self.pairs(plain, plain)
        directed *= domain.radius / np.sqrt(np.maximum(lengths, _NO_SPREAD))
        log_det = domain.log_det - 0.5 * (Z.shape[1] * np.log(self.scale) - np.log(self.left))
        return -0.5 * self.pairs(Z, Z) - log_det, np.stack([along - 0.5 * squares, directed])

    def pairs(self, X: Reals, Y: Reals) -> Reals:
        """Return that of each row of X with the row of Y."""
        along = np.einsum("nd,nd->n", self.g, X) * np.einsum("nd,nd->n", self.g, Y)
        product: Reals = self.scale * (np.einsum("nd,nd->n", X, Y) + self.k * along)
        return product

    def with_rows(self, X: Reals, rows: Reals) -> Reals:
        """Return that of each row of X with all `rows`."""
        gx = self.k * np.einsum("nd,nd->n", self.g, X)
        product: Reals = self.scale * (X @ rows.T + gx[:, None] * (self.g @ rows.T))
        return product

    def squares_of(self, rows: Reals) -> Reals:
        """Return that of all `rows` with themselves."""
        square: Reals = self.scale * (np.sum(rows**2, axis=1) + self.k[:, None] * (self.g @ rows.T) ** 2)
        return square
