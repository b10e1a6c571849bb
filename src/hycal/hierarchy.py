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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.linalg.lapack import dtrtri

from hycal.discriminant import class_means
from hycal.leave_one_out import Samples
from hycal.records import ClassRecord, Records
from hycal.ridge import gram_matrix
from hycal.statistics import directions
from hycal.validation import Doubles, Floats

_NO_SPREAD = 1e-10  # mean squared deviation of samples that differ by rounding alone
_BETWEEN_STRENGTH = 0.25  # classes per dimension that an isotropic B is worth
_LEAST_BETWEEN = 1e-3  # variance of class means, in units of the variance within
_LEAST_LEFT = 0.05  # of a precision's denominator once a sample is taken away


@dataclass(frozen=True, eq=False)
class Prior:
    """What all data say: W0, and the basis in which it is I and B is diagonal.

    Attributes
    ----------
    within : ndarray of shape (d, d)
        W0.
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
    to_basis: Doubles
    from_basis: Doubles
    between: Doubles
    freedom: float

    def posterior(self, offsets: Doubles, counts: npt.NDArray[np.int64]) -> Doubles:
        """Return the posterior of class means less their domain's, from the plain ones."""
        nb = counts[:, None] * self.between
        shrunk: Doubles = ((offsets @ self.to_basis) * (nb / (nb + 1.0))) @ self.from_basis
        return shrunk

    def posterior_without(self, whole: Doubles, offsets: Doubles, counts: npt.NDArray[np.int64]) -> Doubles:
        """Return the posterior from `offsets`, with B as if they, not `whole`, had been among its class means.

        A class that stands in B by its own mean hardly shrinks towards the others, so a sample that is left out must
        leave B too. B changes by rank two and m B (m B + I)^{-1} = I - (I + m B)^{-1} follows by Woodbury's identity.
        """
        U = np.stack([whole @ self.to_basis, offsets @ self.to_basis], axis=1)
        R = 1.0 / (1.0 + counts[:, None] * self.between)
        inner = (U * R[:, None]) @ U.transpose(0, 2, 1)
        change = np.einsum("n,ij->nij", self.freedom / counts, np.diag([-1.0, 1.0]))
        coefficients = np.linalg.solve(inner + change, inner[:, :, 1:])
        kept = U[:, 1] * (1.0 - R) + R * (coefficients.transpose(0, 2, 1) @ U)[:, 0]
        posterior: Doubles = kept @ self.from_basis
        return posterior


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
    centre: Doubles
    whitening: Doubles
    log_det: float
    weight: float
    offsets: Doubles
    plain: Doubles
    posterior: Doubles
    radius: float

    def white(self, X: npt.NDArray[np.floating]) -> Doubles:
        """Return z of the rows of X."""
        return (X - self.centre) @ self.whitening

    def evidence(self, X: npt.NDArray[np.floating]) -> tuple[Doubles, Doubles]:
        """Return q, (n,), and the evidence for classes, (2, n, C_g), of queries."""
        Z, (A, c) = self.white(X), self.linear()
        return -0.5 * np.einsum("nd,nd->n", Z, Z) - self.log_det, Z @ A.transpose(0, 2, 1) + c[:, None]

    def linear(self) -> tuple[Doubles, Doubles]:
        """Return A, (2, C_g, d), and c, (2, C_g), with evidence A z + c."""
        squares = np.sum(self.posterior**2, axis=1)
        A = np.stack([self.posterior, self.radius * directions(self.plain)])
        return A, np.stack([-0.5 * squares, np.zeros_like(squares)])


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """All domains, and the counts and plain means of all classes."""

    prior: Prior
    domains: tuple[DomainGaussians, ...]
    domain_of: npt.NDArray[np.intp]

    def held_out(self, samples: Samples) -> tuple[Doubles, Doubles]:
        """Return q, (n, G), and evidence, (2, n, C), of samples, each without itself in its class and its domain.

        What all data say (W0, b), the centre and the radius of the domain stay as they are.
        """
        q, e = np.empty((len(samples.X), len(self.domains))), np.empty((2, len(samples.X), len(self.domain_of)))
        for number, domain in enumerate(self.domains):
            theirs = np.flatnonzero(self.domain_of[samples.own] != number)
            q[theirs, number], e[:, theirs[:, None], domain.columns] = domain.evidence(samples.X[theirs])
            mine = np.flatnonzero(self.domain_of[samples.own] == number)
            q[mine, number], e[:, mine[:, None], domain.columns] = self.held_out_within(domain, samples.at(mine))
        return q, e

    def held_out_within(self, domain: DomainGaussians, samples: Samples) -> tuple[Doubles, Doubles]:
        """Return q and evidence of samples of this domain; Sherman and Morrison give the precision without each."""
        Z = domain.white(samples.X)
        each, own, n = samples.each, np.searchsorted(domain.columns, samples.own), samples.counts
        gap = Z - domain.plain[own]
        a = n / (n - 1.0) * self.prior.influence / domain.weight
        left = np.maximum(1.0 - a * np.einsum("nd,nd->n", gap, gap), _LEAST_LEFT)
        form = _Updated((domain.weight - 1.0) / domain.weight, a / left, gap)
        plain = domain.plain[own] - gap / (n - 1.0)[:, None]
        offsets = domain.offsets[own]
        without = (n[:, None] * offsets - (samples.X - domain.centre)) / (n - 1.0)[:, None]
        posterior = self.prior.posterior_without(offsets, without, n - 1) @ domain.whitening
        along, squares = form.with_rows(Z, domain.posterior), form.squares_of(domain.posterior)
        directed, lengths = form.with_rows(Z, domain.plain), form.squares_of(domain.plain)
        along[each, own], squares[each, own] = form.pairs(Z, posterior), form.pairs(posterior, posterior)
        directed[each, own], lengths[each, own] = form.pairs(Z, plain), form.pairs(plain, plain)
        directed *= domain.radius / np.sqrt(np.maximum(lengths, _NO_SPREAD))
        log_det = domain.log_det - 0.5 * (Z.shape[1] * np.log(form.scale) - np.log(left))
        return -0.5 * form.pairs(Z, Z) - log_det, np.stack([along - 0.5 * squares, directed])


@dataclass(frozen=True, eq=False)
class _Updated:
    """The inner products scale (x.y + k (g.x)(g.y)), one for each sample."""

    scale: float
    k: Doubles
    g: Doubles

    def pairs(self, X: Doubles, Y: Doubles) -> Doubles:
        """Return that of each row of X with the row of Y."""
        along = np.einsum("nd,nd->n", self.g, X) * np.einsum("nd,nd->n", self.g, Y)
        product: Doubles = self.scale * (np.einsum("nd,nd->n", X, Y) + self.k * along)
        return product

    def with_rows(self, X: Doubles, rows: Doubles) -> Doubles:
        """Return that of each row of X with all `rows`."""
        gx = self.k * np.einsum("nd,nd->n", self.g, X)
        product: Doubles = self.scale * (X @ rows.T + gx[:, None] * (self.g @ rows.T))
        return product

    def squares_of(self, rows: Doubles) -> Doubles:
        """Return that of all `rows` with themselves."""
        square: Doubles = self.scale * (np.sum(rows**2, axis=1) + self.k[:, None] * (self.g @ rows.T) ** 2)
        return square


def build(records: Records, *, strength: float, ridge: float) -> Hierarchy:
    """Return the hierarchy of classes, domains and all data.

    Parameters
    ----------
    records : Records
    strength : float
        tau: how many samples the covariance of all data is worth to a domain, in units of the dimension.
    ridge : float
        e: the share of the identity in the covariance of all data.
    """
    names, domain_of = np.unique(records.domains, return_inverse=True)
    columns = [np.flatnonzero(domain_of == number) for number in range(len(names))]
    moments = [_Moments.of([records.ordered[column] for column in group]) for group in columns]
    prior = _prior(moments, strength * records.width, ridge)
    domains = (_domain(group, moment, prior) for group, moment in zip(columns, moments, strict=True))
    return Hierarchy(prior, tuple(domains), domain_of)


@dataclass(frozen=True, eq=False)
class _Moments:
    """The classes of a domain: counts, the mean of their means, their means less it, and the scatter around them."""

    counts: npt.NDArray[np.int64]
    centre: Doubles
    offsets: Doubles
    scatter: Doubles

    @classmethod
    def of(cls, records: Sequence[ClassRecord]) -> _Moments:
        counts = np.array([record.count for record in records])
        rows = np.concatenate([record.statistics.samples for record in records]).astype(np.float64)
        means = class_means(rows, counts)
        centre = means.mean(axis=0)
        rows -= centre
        offsets = means - centre
        # Sum n (mu - m)(mu - m)' is taken from the scatter around m: no copy of the samples less their class mean.
        lower = gram_matrix(rows.shape[1], [rows]) - (offsets.T * counts) @ offsets
        return cls(counts, centre, offsets, lower)

    @property
    def freedom(self) -> int:
        """N - C."""
        return int(self.counts.sum()) - len(self.counts)


def _prior(moments: Sequence[_Moments], tau: float, ridge: float) -> Prior:
    offsets, counts = (np.concatenate([getattr(part, name) for part in moments]) for name in ("offsets", "counts"))
    classes, d = offsets.shape
    within_freedom = max(sum(part.freedom for part in moments), 1)
    spread = sum(float(np.trace(part.scatter)) for part in moments) / within_freedom
    if spread <= _NO_SPREAD:  # no class has two samples that differ: a unit vector's variance stands in
        W, influence = np.eye(d) / d, 0.0
    else:
        influence = (1.0 - ridge) / within_freedom
        W = influence * np.sum([part.scatter for part in moments], axis=0)
        W.flat[:: d + 1] += ridge * spread / d
    L = cholesky(W, lower=True, check_finite=False)
    white = solve_triangular(L, offsets.T, lower=True, check_finite=False).T
    freedom = max(classes - len(moments), 1)
    noise = float(np.sum(1.0 / counts)) * freedom / classes
    scatter = white.T @ white - noise * np.eye(d)
    pseudo = _BETWEEN_STRENGTH * d
    level = max(float(np.trace(scatter)) / d / freedom, _LEAST_BETWEEN)
    scatter.flat[:: d + 1] += pseudo * level
    b, V = eigh(scatter / (freedom + pseudo), driver="evd", overwrite_a=True, check_finite=False)
    return Prior(
        within=W,
        strength=tau,
        influence=1.0 + tau * influence,
        to_basis=solve_triangular(L, V, lower=True, trans="T", check_finite=False),
        from_basis=V.T @ L.T,
        between=np.maximum(b, _LEAST_BETWEEN),
        freedom=freedom + pseudo,
    )


def _domain(columns: npt.NDArray[np.intp], moments: _Moments, prior: Prior) -> DomainGaussians:
    weight, offsets = moments.freedom + prior.strength, moments.offsets
    L = cholesky((moments.scatter + prior.strength * prior.within) / weight, lower=True, check_finite=False)
    whitening: Any = dtrtri(L, lower=1)[0].T
    posterior = prior.posterior(offsets, moments.counts) @ whitening
    return DomainGaussians(
        columns=columns,
        centre=moments.centre,
        whitening=whitening,
        log_det=float(np.sum(np.log(np.diag(L)))),
        weight=weight,
        offsets=offsets,
        plain=offsets @ whitening,
        posterior=posterior,
        radius=float(np.sqrt(np.mean(np.sum(posterior**2, axis=1)))),
    )


def in_float32(domain: DomainGaussians) -> tuple[Floats, Floats, Floats, Floats]:
    """Return whitening, white centre, A and c of a domain, as scoring uses them."""
    A, c = domain.linear()
    parts = domain.whitening, domain.centre @ domain.whitening, A, c
    whitening, centre, A32, c32 = (np.ascontiguousarray(part, dtype=np.float32) for part in parts)
    return whitening, centre, A32, c32
