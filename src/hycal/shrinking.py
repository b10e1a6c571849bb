"""From records to the hierarchy of `hycal.hierarchy`: the moments of domains, what all data say, then shrinking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky
from scipy.linalg.lapack import dtrtri

from hycal.discriminant import class_means
from hycal.hierarchy import DomainGaussians, Hierarchy, Prior
from hycal.parallel import mapped
from hycal.records import ClassRecord, Records
from hycal.ridge import gram_matrix
from hycal.validation import Doubles

_NO_SPREAD = 1e-10  # mean squared deviation of samples that differ by rounding alone
_BETWEEN_STRENGTH = 0.25  # classes per dimension that an isotropic B is worth
_LEAST_BETWEEN = 1e-3  # variance of class means, in units of the variance within


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
    sizes = [int(records.counts[group].sum()) for group in columns]
    moments = mapped(lambda group: _Moments.of([records.ordered[column] for column in group]), columns, sizes)
    prior = _prior(moments, strength * records.width, ridge)
    domains = tuple(mapped(lambda pair: _domain(*pair, prior), list(zip(columns, moments, strict=True)), sizes))
    means = np.empty((len(domain_of), records.width))
    for domain in domains:
        means[domain.columns] = domain.centre + domain.offsets
    single = tuple(domain.in_float32() for domain in domains)
    return Hierarchy(prior.in_float32(), single, domain_of, means.astype(np.float32))


@dataclass(frozen=True, eq=False)
class _Moments:
    """The classes of a domain: counts, the mean of their means, their means less it, and the scatter around them.

    Of the scatter only the lower triangle counts.
    """

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
    L = np.linalg.cholesky(W)
    whitening = np.linalg.inv(L).T
    white = offsets @ whitening
    freedom = max(classes - len(moments), 1)
    noise = float(np.sum(1.0 / counts)) * freedom / classes
    scatter = white.T @ white - noise * np.eye(d)
    pseudo = _BETWEEN_STRENGTH * d
    level = max(float(np.trace(scatter)) / d / freedom, _LEAST_BETWEEN)
    scatter.flat[:: d + 1] += pseudo * level
    b, V = np.linalg.eigh(scatter / (freedom + pseudo))
    return Prior(
        within=W,
        strength=tau,
        influence=1.0 + tau * influence,
        to_basis=whitening @ V,
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
