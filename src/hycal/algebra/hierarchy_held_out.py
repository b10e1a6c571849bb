"""Leave-one-out evidence of a hierarchy: each learned sample is scored as if the hierarchy had been built without it.

A sample x leaves its class mean, the scatter of its domain and of all data, and B. The scale of these (t, v, the trace
of B), the centre and radius of its domain, and B for other classes stay. `hycal.algebra.hierarchy` defines the model.

Without x the covariance of a domain changes by rank one. In white space W_g becomes (I - a g g')/scale, so by Sherman
and Morrison the inner product of two vectors becomes scale (y.z + k (g.y)(g.z)).

    symbol   shape    meaning (n samples, left out one by one; white space of one domain)
    x, z     (n, d)   the samples, and the samples in white space
    K        (n,)     samples of the class, x included
    g        (n, d)   x minus the mean of its class, in white space
    a        (n,)     K/(K-1) influence/weight: how much of g g' the covariance loses
    left     (n,)     1 - a g.g: what is left of the determinant, apart from the scale
    k        (n,)     a/left
    scale    scalar   weight of the covariance without x, over the weight with x
    U        (n,2,d)  offset of the class mean with x and without x, in the basis of the prior
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hycal.algebra.cholesky import times_upper
from hycal.algebra.hierarchy import DomainGaussians, Hierarchy, Prior, Reals
from hycal.parallel.threads import map_parallel
from hycal.state.selection import Selection
from hycal.validation import Doubles

LEAST_LEFT = 0.05  # least value of `left`
_SHORTEST = 1e-10  # least squared length of a mean whose direction counts


def held_out_evidence(hierarchy: Hierarchy, samples: Selection) -> tuple[Doubles, list[Reals]]:
    """Return the same as `Hierarchy.evidence` of samples, each without itself."""
    n, G = len(samples.X), len(hierarchy.domains)
    q, e = np.empty((n, G)), [np.empty((2, n, size), np.float32) for size in hierarchy.sizes]

    def fill(number: int) -> None:
        for rows, evidence in _by_membership(hierarchy, number, samples):
            q[rows, number] = evidence.log_density()
            e[number][0, rows], e[number][1, rows] = evidence.distance(), evidence.direction()

    map_parallel(fill, range(G), hierarchy.sizes)
    return q, e


def held_out_energies(hierarchy: Hierarchy, samples: Selection) -> Reals:
    """Return the log density of the best class of each domain, (n, G), of samples, each without itself."""
    energies = np.empty((len(samples.X), len(hierarchy.domains)))

    def fill(number: int) -> None:
        for rows, evidence in _by_membership(hierarchy, number, samples):
            energies[rows, number] = evidence.log_density() + evidence.distance().max(axis=1)

    map_parallel(fill, range(len(hierarchy.domains)), hierarchy.sizes)
    return energies


def _by_membership(
    hierarchy: Hierarchy, number: int, samples: Selection
) -> Iterator[tuple[npt.NDArray[np.intp], HeldOutEvidence]]:
    """Yield the evidence in one domain for its own samples, then for the samples of other domains."""
    domain, domain_of = hierarchy.domains[number], hierarchy.domain_of[samples.own]
    own, others = np.flatnonzero(domain_of == number), np.flatnonzero(domain_of != number)
    yield own, evidence_in_own_domain(hierarchy.prior, domain, samples.at(own))
    yield others, _evidence_in_other_domain(hierarchy, domain, samples.at(others))


def evidence_in_own_domain(prior: Prior, domain: DomainGaussians, samples: Selection) -> HeldOutEvidence:
    """Return the evidence of samples of `domain` in that domain, each without itself."""
    own, counts = np.searchsorted(domain.columns, samples.own), samples.counts
    Z, offsets = domain.white(samples.X), domain.offsets[own]
    g = Z - domain.plain[own]
    K = counts.astype(Z.dtype)[:, None]
    without = (K * offsets - (samples.X - domain.centre)) / (K - 1.0)
    product = InnerProduct.without(
        g, counts, influence=prior.influence, weight=domain.weight, weight_after=domain.weight - 1.0
    )
    posterior = times_upper(posterior_without(prior, offsets, without, counts - 1), domain.whitening)
    return HeldOutEvidence(domain, product, Z, OwnMeans(own, domain.plain[own] - g / (K - 1.0), posterior))


def _evidence_in_other_domain(hierarchy: Hierarchy, domain: DomainGaussians, samples: Selection) -> HeldOutEvidence:
    """Return the same for samples of other domains, which enter the covariance of this domain through W0 alone."""
    g = times_upper(samples.X - hierarchy.means[samples.own], domain.whitening)
    influence = hierarchy.prior.influence - 1.0
    product = InnerProduct.without(
        g, samples.counts, influence=influence, weight=domain.weight, weight_after=domain.weight
    )
    return HeldOutEvidence(domain, product, domain.white(samples.X), None)


def posterior_without(prior: Prior, whole: Reals, offsets: Reals, counts: npt.NDArray[np.int64]) -> Reals:
    """Return posterior means minus m_g from `offsets`, with B as if `offsets` had replaced `whole` in it.

    `whole` are the class means with the sample and `offsets` those without it, both minus m_g; `counts` are without it.

    A class whose own mean is in B hardly shrinks, so a sample that is left out must leave B too. B changes by rank two,
    and K B (K B + I)^-1 = I - (I + K B)^-1 follows by the Woodbury identity.
    """
    U = np.stack([whole @ prior.to_basis, offsets @ prior.to_basis], axis=1)
    R = 1.0 / (1.0 + counts.astype(U.dtype)[:, None] * prior.between)
    U_R_U = (U * R[:, None]) @ U.transpose(0, 2, 1)
    change = np.einsum("n,ij->nij", prior.freedom / counts, np.diag([-1.0, 1.0]))
    coefficients = np.linalg.solve(U_R_U + change, U_R_U[:, :, 1:]).astype(U.dtype)
    shrunk = U[:, 1] * (1.0 - R) + R * (coefficients.transpose(0, 2, 1) @ U)[:, 0]
    return shrunk @ prior.from_basis


@dataclass(frozen=True, eq=False)
class OwnMeans:
    """Position of the class of each sample in its domain, and its white plain and posterior mean without the sample."""

    places: npt.NDArray[np.intp]
    plain: Reals
    posterior: Reals


@dataclass(frozen=True, eq=False)
class HeldOutEvidence:
    """Samples Z in the white space of a domain, and the inner product of that space without each of them.

    `own` is None for samples of other domains, whose classes are not in this one.
    """

    domain: DomainGaussians
    product: InnerProduct
    Z: Reals
    own: OwnMeans | None

    def log_density(self) -> Reals:
        """Return q, (n,)."""
        product, d = self.product, self.Z.shape[1]
        log_det = self.domain.log_det - 0.5 * (d * np.log(product.scale) - np.log(product.left))
        return -0.5 * product.pairs(self.Z, self.Z) - log_det

    def distance(self) -> Reals:
        """Return the evidence by distance, (n, C_g)."""
        z_s, s_s = self._products(self.domain.posterior, None if self.own is None else self.own.posterior)
        s_s *= 0.5
        z_s -= s_s
        return z_s

    def direction(self) -> Reals:
        """Return the evidence by direction, (n, C_g)."""
        z_m, m_m = self._products(self.domain.plain, None if self.own is None else self.own.plain)
        z_m *= self.domain.radius / np.sqrt(np.maximum(m_m, _SHORTEST))
        return z_m

    def _products(self, means: Reals, own_means: Reals | None) -> tuple[Reals, Reals]:
        """Return the products of each sample with all class means, and those of the means with themselves."""
        z_m, m_m = self.product.with_rows(self.Z, means)
        if self.own is not None and own_means is not None:
            at = np.arange(len(self.Z)), self.own.places
            z_m[at], m_m[at] = self.product.pairs(self.Z, own_means), self.product.pairs(own_means, own_means)
        return z_m, m_m


@dataclass(frozen=True, eq=False)
class InnerProduct:
    """Inner products scale (y.z + k (g.y)(g.z)) of white space without a sample, one for each sample."""

    scale: float
    k: Reals  # (n,)
    g: Reals  # (n, d)
    left: Reals  # (n,)

    @classmethod
    def without(
        cls, g: Reals, counts: npt.NDArray[np.int64], *, influence: float, weight: float, weight_after: float
    ) -> InnerProduct:
        """Subtract K/(K-1) influence g g' from weight I, and divide by `weight_after`."""
        a = (counts / (counts - 1.0) * influence / weight).astype(g.dtype)
        left = np.maximum(1.0 - a * np.einsum("nd,nd->n", g, g), LEAST_LEFT)
        return cls(weight_after / weight, a / left, g, left)

    def pairs(self, Y: Reals, Z: Reals) -> Reals:
        """Return the product of each row of Y with the same row of Z, (n,)."""
        g_y_g_z = np.einsum("nd,nd->n", self.g, Y) * np.einsum("nd,nd->n", self.g, Z)
        return self.scale * (np.einsum("nd,nd->n", Y, Z) + self.k * g_y_g_z)

    def with_rows(self, Z: Reals, M: Reals) -> tuple[Reals, Reals]:
        """Return the products of each row of Z with all rows of M, and of the rows of M with themselves, (n, C) each.

        In the second result each sample has its own inner product too.
        """
        g_m = self.g @ M.T
        m_m = g_m**2
        m_m *= self.k[:, None]
        m_m += np.einsum("cd,cd->c", M, M)
        m_m *= self.scale
        z_m = g_m  # in place
        z_m *= (self.k * np.einsum("nd,nd->n", self.g, Z))[:, None]
        z_m += Z @ M.T
        z_m *= self.scale
        return z_m, m_m
