"""From records to a `Hierarchy`: moments of each domain, W0 and B of all data, then the white space of each domain.

`hycal.algebra.hierarchy` defines the model. Everything here is float64; the result is float32 where queries are scored.

    symbol    name               shape     meaning (domain g of C_g classes and N_g samples)
    K         counts             (C_g,)    samples of each class
    m_g       centre             (d,)      mean of the class means
              offsets            (C_g, d)  mu_c - m_g
    S_g       scatter            (d, d)    sum of (x - mu_c)(x - mu_c)'
    v_g       freedom            scalar    N_g - C_g
    W0        _Within.W0         (d, d)    (1 - e) S/v + e t I, with S and v summed over domains and t = tr S/(v d)
    tau       _Within.tau        scalar    samples that W0 is worth to a domain
    B                            (d, d)    covariance of offsets less their sampling noise, plus an isotropic part
    L                            (d, d)    lower Cholesky factor of a covariance; rows times L^-1' are white
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.algebra.cholesky import inverse_factor, times_upper
from hycal.algebra.covariance import NO_SPREAD, class_means
from hycal.algebra.hierarchy import DomainGaussians, Hierarchy, Prior, Reals
from hycal.parallel.threads import map_parallel
from hycal.state.records import ClassRecord, Records
from hycal.state.sealed import SealedRecords
from hycal.validation import Doubles, Floats

_ROUNDING = 1e-10  # least share of the identity that keeps W0 positive definite
_IDENTITY_OF_MEANS = 2.0  # of the squared offset of a class mean: identity beside the scatter of means
_BETWEEN_STRENGTH = 0.25  # classes per dimension that the isotropic part of B is worth
_LEAST_BETWEEN = 1e-3  # least variance of class means, in units of the variance within classes


def fit_hierarchy(
    records: Records, *, strength: float, ridge: float, domain_of: npt.NDArray[np.intp] | None = None
) -> Hierarchy:
    """Return the hierarchy of classes, domains and all data.

    `strength` is tau in units of the dimension: how many samples W0 is worth to a domain. `ridge` is e, the share of
    the identity in W0. `domain_of` numbers the domain of each class, (C,), from 0 on; by default the domains have the
    names in `records`.
    """
    if domain_of is None:
        domain_of = np.unique(records.domains, return_inverse=True)[1]
    columns = [np.flatnonzero(domain_of == number) for number in range(domain_of.max() + 1)]
    sizes = [int(records.counts[group].sum()) for group in columns]
    moments = map_parallel(lambda group: _Moments.of_group(records, group), columns, sizes)
    freedom, offsets = sum(part.freedom for part in moments), moments[0].offsets if len(moments) == 1 else None
    within = _Within.of([part.scatter for part in moments], freedom, strength * records.width, ridge, offsets)
    # The prior takes as long as all domains together, and neither needs the other.
    tasks: list[Callable[[], Any]] = [partial(_prior, moments, within)]
    tasks += [partial(_WhiteSpace.of, part, within) for part in moments]
    prior, *spaces = map_parallel(lambda task: task(), tasks, [sum(sizes), *sizes])
    parts = list(zip(columns, moments, spaces, strict=True))

    def gaussians(part: tuple[npt.NDArray[np.intp], _Moments, _WhiteSpace]) -> DomainGaussians:
        return _domain_gaussians(*part, prior.posterior(part[1].offsets, part[1].counts))

    domains = tuple(map_parallel(gaussians, parts, sizes))
    means = np.empty((len(domain_of), records.width), np.float32)
    for group, part in zip(columns, moments, strict=True):
        means[group] = part.centre + part.offsets
    return Hierarchy(prior.in_float32(), domains, domain_of, means)


def identity_share(records: Records, ridge: float) -> float:
    """Return e: `ridge` from v = d/4 degrees of freedom on; below, its odds grow by sqrt(d/4v)."""
    freedom = max(int(records.counts.sum()) - len(records.counts), 1)
    growth = max(1.0, float(np.sqrt(records.width / 4.0 / freedom)))
    return ridge * growth / (ridge * growth + 1.0 - ridge)


@dataclass(frozen=True, eq=False)
class _Moments:
    """Moments of the classes of one domain: K, m_g, mu_c - m_g, S_g and v_g."""

    counts: npt.NDArray[np.int64]
    centre: Doubles
    offsets: Doubles
    scatter: Doubles
    freedom: int

    @classmethod
    def of_group(cls, records: Records, columns: npt.NDArray[np.intp]) -> _Moments:
        """Return the moments of the classes at `columns`, which are a whole group if the records are sealed."""
        if not isinstance(records, SealedRecords):
            return cls.of([records.ordered[column] for column in columns])
        spread, means = records.group_spreads[records.grouping[columns[0]]], records.means[columns]
        centre = means.mean(axis=0)
        return cls(records.counts[columns], centre, means - centre, spread.scatter, spread.freedom)

    @classmethod
    def of(cls, records: Sequence[ClassRecord]) -> _Moments:
        counts = np.array([record.count for record in records])
        rows = np.concatenate([record.samples.rows for record in records], dtype=np.float64)
        means = class_means(rows, counts)
        centre = means.mean(axis=0)
        rows -= centre
        offsets = means - centre
        # S_g is the scatter around m_g minus the sum of K (mu - m_g)(mu - m_g)': no centred copy of the samples.
        # NumPy's product, unlike SciPy's dsyrk, lets other threads work.
        scatter = rows.T @ rows - (offsets.T * counts) @ offsets
        return cls(counts, centre, offsets, scatter, int(counts.sum()) - len(counts))


@dataclass(frozen=True, eq=False)
class _Within:
    """W0, tau, e, and the weight (1 - e)/v of a sample's scatter in W0."""

    W0: Doubles
    tau: float
    ridge: float
    influence: float

    @classmethod
    def of(
        cls, scatters: Sequence[Doubles], freedom: int, tau: float, ridge: float, offsets: Doubles | None = None
    ) -> _Within:
        """Return W0 of domains with these scatters; where samples do not vary, of the `offsets` of class means."""
        v, d = max(freedom, 1), len(scatters[0])
        variance = sum(float(np.trace(scatter)) for scatter in scatters) / v
        if variance <= NO_SPREAD:
            return cls(np.eye(d) / d if offsets is None else _covariance_of_means(offsets), tau, ridge, 0.0)
        influence = (1.0 - ridge) / v
        W0 = influence * np.sum(scatters, axis=0)
        W0.flat[:: d + 1] += max(ridge, _ROUNDING) * variance / d
        return cls(W0, tau, ridge, influence)


def _covariance_of_means(offsets: Doubles) -> Doubles:
    """Return what stands for W0 in one domain where no class has two different samples, with the trace 1.

    Samples are taken to vary within classes as class means do, whose mean squared offset is the unit here. Several
    domains need the identity: they are told apart by class means, which would not differ much in such a space.
    """
    W0: Doubles = offsets.T @ offsets / max(float(np.mean(np.sum(offsets**2, axis=1))), NO_SPREAD)
    W0.flat[:: len(W0) + 1] += _IDENTITY_OF_MEANS
    W0 /= np.trace(W0)
    return W0


def _prior(moments: Sequence[_Moments], within: _Within) -> Prior:
    """Return the global prior: B from the class means of all domains, and the basis that diagonalises W0 and B."""
    offsets, counts = (np.concatenate([getattr(part, name) for part in moments]) for name in ("offsets", "counts"))
    C, d = offsets.shape
    L, whitening = _whitening(within.W0)
    white = offsets @ whitening
    freedom = max(C - len(moments), 1)
    noise = float(np.sum(1.0 / counts)) * freedom / C
    e, V = _spectrum(white)
    e -= noise
    pseudo = _BETWEEN_STRENGTH * d
    level = max(float(e.sum()) / d / freedom, _LEAST_BETWEEN)
    b = (e + pseudo * level) / (freedom + pseudo)
    return Prior(
        within=within.W0,
        strength=within.tau,
        influence=1.0 + within.tau * within.influence,
        to_basis=whitening @ V,
        from_basis=V.T @ L.T,
        between=np.maximum(b, _LEAST_BETWEEN),
        freedom=freedom + pseudo,
        ridge=within.ridge,
    )


def _spectrum(rows: Doubles) -> tuple[Doubles, Doubles]:
    """Return the eigenvalues, (d,), and eigenvectors, (d, d), of the scatter of `rows` around 0.

    Where there are fewer rows than dimensions, only the space of the rows is searched; the other eigenvalues are 0.
    """
    count, d = rows.shape
    if count >= d:
        return np.linalg.eigh(rows.T @ rows)
    V, R = np.linalg.qr(rows.T, mode="complete")
    e, U = np.linalg.eigh(R[:count] @ R[:count].T)
    V[:, :count] = V[:, :count] @ U
    return np.append(e, np.zeros(d - count)), V


def _whitening(covariance: Doubles) -> tuple[Doubles, Doubles]:
    """Return L of a covariance LL', and L^-1'."""
    L: Any = np.linalg.cholesky(covariance)
    return L, inverse_factor(L).T


def changed_prior(prior: Prior, scatters: Sequence[Doubles], freedom: int) -> Prior | None:
    """Return the prior with W0 of domains with these scatters and `freedom` in all; B stays.

    Where samples do not vary within classes, W0 stays. None if they vary and did not, or the reverse.
    """
    within = _Within.of(scatters, freedom, prior.strength, prior.ridge)
    influence = 1.0 + within.tau * within.influence
    if (influence > 1.0) != (prior.influence > 1.0):
        return None
    return prior if influence == 1.0 else replace(prior, within=within.W0, influence=influence)


def changed_domain(
    before: DomainGaussians,
    prior: Prior,
    columns: npt.NDArray[np.intp],
    counts: npt.NDArray[np.int64],
    means: Floats,
    scatter: Doubles,
    source: npt.NDArray[np.intp],
) -> DomainGaussians:
    """Return a domain of these class means, (C_g, d), and this scatter, under a prior in float32.

    `before` is the same domain before the change, with the same B; `source` the place there of each class, (C_g,), -1
    if it changed. All offsets moved alike, and posterior means are linear in them: one product for each count K does.
    """
    centre = means.mean(axis=0, dtype=np.float64)
    offsets: Any = means - _single(centre)
    moments = _Moments(counts, centre, offsets, scatter, int(counts.sum()) - len(counts))
    space = _WhiteSpace.of(moments, _Within(prior.within, prior.strength, prior.ridge, prior.influence))
    K, kind = np.unique(counts, return_inverse=True)
    moves = prior.posterior(np.tile(before.centre - _single(centre), (len(K), 1)), K)
    shrunk, fresh = before.shrunk[source] + moves[kind], np.flatnonzero(source < 0)
    shrunk[fresh] = prior.posterior(offsets[fresh], counts[fresh])
    return _domain_gaussians(columns, moments, space, shrunk)


@dataclass(frozen=True, eq=False)
class _WhiteSpace:
    """W_g^-1/2, log|W_g|/2, v_g + tau, and the white offsets of the plain class means of one domain."""

    whitening: Doubles
    log_det: float
    weight: float
    plain: Doubles

    @classmethod
    def of(cls, moments: _Moments, within: _Within) -> _WhiteSpace:
        weight = moments.freedom + within.tau
        L, whitening = _whitening((moments.scatter + within.tau * within.W0) / weight)
        whitening = whitening.astype(moments.offsets.dtype)
        return cls(whitening, float(np.sum(np.log(np.diag(L)))), weight, times_upper(moments.offsets, whitening))


def _domain_gaussians(
    columns: npt.NDArray[np.intp], moments: _Moments, space: _WhiteSpace, shrunk: Reals
) -> DomainGaussians:
    """Return the classes of one domain in float32; `shrunk` are their posterior means minus m_g."""
    posterior = times_upper(shrunk, space.whitening)
    return DomainGaussians(
        columns=columns,
        centre=_single(moments.centre),
        whitening=_single(space.whitening),
        log_det=space.log_det,
        weight=space.weight,
        offsets=_single(moments.offsets),
        shrunk=_single(shrunk),
        scatter=moments.scatter,
        plain=_single(space.plain),
        posterior=_single(posterior),
        radius=float(np.sqrt(np.mean(np.sum(posterior**2, axis=1)))),
    )


def _single(array: npt.NDArray[np.floating]) -> Floats:
    """Return the array in float32."""
    return np.ascontiguousarray(array, np.float32)
