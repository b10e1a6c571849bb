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

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.algebra.white_space import DomainGaussians, InnerProduct, OwnMeans, Reals, WithoutEach
from hycal.parallel.threads import mapped
from hycal.state.selection import Selection
from hycal.validation import Doubles


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
    freedom : float
        Class means that B is worth, its isotropic part included.
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
class Hierarchy:
    """All domains; the domain of each class, and its plain mean."""

    prior: Prior
    domains: tuple[DomainGaussians, ...]
    domain_of: npt.NDArray[np.intp]
    means: Reals

    @property
    def sizes(self) -> list[int]:
        """Classes of each domain."""
        return [len(domain.columns) for domain in self.domains]

    def held_out(self, samples: Selection) -> tuple[Reals, Reals]:
        """Return q, (n, G), and evidence, (2, n, C), of samples, each without itself.

        It leaves its class, its domain, and the scatter and class means of all data. What stays is the scale of these
        (t, v, the trace of B), the centre and radius of its domain, and B for other classes than its own.
        """
        q, e = np.empty((len(samples.X), len(self.domains))), np.empty((2, len(samples.X), len(self.domain_of)))

        def fill(number: int) -> None:
            for rows, space in self._without_each(number, samples):
                q[rows, number] = space.log_density()
                e[:, rows[:, None], space.domain.columns] = space.distance(), space.direction()

        mapped(fill, range(len(self.domains)), self.sizes)
        return q, e

    def held_out_energies(self, samples: Selection) -> Reals:
        """Return the log density of the best class of each domain, (n, G), of samples, each without itself."""
        energies = np.empty((len(samples.X), len(self.domains)))

        def fill(number: int) -> None:
            for rows, space in self._without_each(number, samples):
                energies[rows, number] = space.log_density() + space.distance().max(axis=1)

        mapped(fill, range(len(self.domains)), self.sizes)
        return energies

    def _without_each(self, number: int, samples: Selection) -> Iterator[tuple[npt.NDArray[np.intp], WithoutEach]]:
        """Yield the samples of a domain, then all others, in the white space of that domain."""
        of = self.domain_of[samples.own]
        for rows, view in (
            (np.flatnonzero(of == number), self.without_each_of),
            (np.flatnonzero(of != number), self._without_each_elsewhere),
        ):
            yield rows, view(self.domains[number], samples.at(rows))

    def without_each_of(self, domain: DomainGaussians, samples: Selection) -> WithoutEach:
        """Return the white space of a domain as its own samples see it, each without itself."""
        own, n = np.searchsorted(domain.columns, samples.own), samples.counts
        Z, offsets = domain.white(samples.X), domain.offsets[own]
        gap = Z - domain.plain[own]
        m = n.astype(Z.dtype)[:, None]
        without = (m * offsets - (samples.X - domain.centre)) / (m - 1.0)
        form = InnerProduct.of(gap, n, self.prior.influence, domain.weight, domain.weight - 1.0)
        posterior = self.prior.posterior_without(offsets, without, n - 1) @ domain.whitening
        return WithoutEach(domain, form, Z, OwnMeans(own, domain.plain[own] - gap / (m - 1.0), posterior))

    def _without_each_elsewhere(self, domain: DomainGaussians, samples: Selection) -> WithoutEach:
        """Return the same for samples of other domains, which are in this one's covariance through W0 alone."""
        gap = (samples.X - self.means[samples.own]) @ domain.whitening
        form = InnerProduct.of(gap, samples.counts, self.prior.influence - 1.0, domain.weight, domain.weight)
        return WithoutEach(domain, form, domain.white(samples.X), None)
