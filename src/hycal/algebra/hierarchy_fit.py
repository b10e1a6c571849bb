"""From records to a `Hierarchy`: the moments of each domain, the prior of all data, then shrinkage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dtrtri

from hycal.algebra.discriminant import NO_SPREAD, class_means
from hycal.algebra.hierarchy import Hierarchy, Prior
from hycal.algebra.white_space import DomainGaussians
from hycal.parallel.threads import mapped
from hycal.state.records import ClassRecord, Records
from hycal.validation import Doubles, Floats

_ROUNDING = 1e-10  # least share of the identity that keeps W0 positive definite
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
    within = _Within.of(moments, strength * records.width, ridge)
    # The basis of all data takes as long as the domains together, and neither needs the other.
    tasks: list[Callable[[], Any]] = [partial(_prior, moments, within)]
    tasks += [partial(_White.of, part, within) for part in moments]
    prior, *whites = mapped(lambda task: task(), tasks, [sum(sizes), *sizes])
    parts = list(zip(columns, moments, whites, strict=True))
    domains = tuple(mapped(lambda part: _domain(*part, prior), parts, sizes))
    means = np.empty((len(domain_of), records.width), np.float32)
    for group, part in zip(columns, moments, strict=True):
        means[group] = part.centre + part.offsets
    return Hierarchy(prior.in_float32(), domains, domain_of, means)


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
        rows = np.concatenate([record.samples.rows for record in records], dtype=np.float64)
        means = class_means(rows, counts)
        centre = means.mean(axis=0)
        rows -= centre
        offsets = means - centre
        # Sum n (mu - m)(mu - m)' is taken from the scatter around m: no copy of the samples less their class mean.
        # NumPy's product, unlike SciPy's dsyrk, lets other threads work.
        return cls(counts, centre, offsets, rows.T @ rows - (offsets.T * counts) @ offsets)

    @property
    def freedom(self) -> int:
        """N - C."""
        return int(self.counts.sum()) - len(self.counts)


@dataclass(frozen=True, eq=False)
class _Within:
    """W0, what it is worth in samples, and how much of a sample's scatter is in it."""

    covariance: Doubles
    strength: float
    influence: float

    @classmethod
    def of(cls, moments: Sequence[_Moments], strength: float, ridge: float) -> _Within:
        freedom, d = max(sum(part.freedom for part in moments), 1), len(moments[0].centre)
        spread = sum(float(np.trace(part.scatter)) for part in moments) / freedom
        if spread <= NO_SPREAD:  # no class has two samples that differ: a unit vector's variance stands in
            return cls(np.eye(d) / d, strength, 0.0)
        influence = (1.0 - ridge) / freedom
        covariance = influence * np.sum([part.scatter for part in moments], axis=0)
        covariance.flat[:: d + 1] += max(ridge, _ROUNDING) * spread / d
        return cls(covariance, strength, influence)


def _whitening(covariance: Doubles) -> tuple[Doubles, Doubles]:
    """Return the lower L of a covariance LL', and L^{-1}', with which rows become white."""
    L: Any = np.linalg.cholesky(covariance)
    inverse: Any = dtrtri(L, lower=1)[0]
    return L, inverse.T


def _prior(moments: Sequence[_Moments], within: _Within) -> Prior:
    offsets, counts = (np.concatenate([getattr(part, name) for part in moments]) for name in ("offsets", "counts"))
    classes, d = offsets.shape
    L, whitening = _whitening(within.covariance)
    white = offsets @ whitening
    freedom = max(classes - len(moments), 1)
    noise = float(np.sum(1.0 / counts)) * freedom / classes
    scatter = white.T @ white
    scatter.flat[:: d + 1] -= noise
    pseudo = _BETWEEN_STRENGTH * d
    level = max(float(np.trace(scatter)) / d / freedom, _LEAST_BETWEEN)
    scatter.flat[:: d + 1] += pseudo * level
    b, V = np.linalg.eigh(scatter / (freedom + pseudo))
    return Prior(
        within=within.covariance,
        strength=within.strength,
        influence=1.0 + within.strength * within.influence,
        to_basis=whitening @ V,
        from_basis=V.T @ L.T,
        between=np.maximum(b, _LEAST_BETWEEN),
        freedom=freedom + pseudo,
    )


@dataclass(frozen=True, eq=False)
class _White:
    """The white space of a domain, and its class means less the centre there."""

    whitening: Doubles
    log_det: float
    weight: float
    plain: Doubles

    @classmethod
    def of(cls, moments: _Moments, within: _Within) -> _White:
        weight = moments.freedom + within.strength
        L, whitening = _whitening((moments.scatter + within.strength * within.covariance) / weight)
        return cls(whitening, float(np.sum(np.log(np.diag(L)))), weight, moments.offsets @ whitening)


def _domain(columns: npt.NDArray[np.intp], moments: _Moments, white: _White, prior: Prior) -> DomainGaussians:
    posterior = prior.posterior(moments.offsets, moments.counts) @ white.whitening
    return DomainGaussians(
        columns=columns,
        centre=_single(moments.centre),
        whitening=_single(white.whitening),
        log_det=white.log_det,
        weight=white.weight,
        offsets=_single(moments.offsets),
        plain=_single(white.plain),
        posterior=_single(posterior),
        radius=float(np.sqrt(np.mean(np.sum(posterior**2, axis=1)))),
    )


def _single(array: npt.NDArray[np.floating]) -> Floats:
    """Return the same in float32, for scoring."""
    return np.ascontiguousarray(array, np.float32)
