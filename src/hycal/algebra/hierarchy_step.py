"""A hierarchy after a small change: only the domains that changed are touched, and no matrix is factorised.

The prior (W0, B, tau) stays. The class means, the centre m_g and the covariance W_g of a domain follow exactly.
`hycal.algebra.hierarchy` defines the model. In the coordinates of the embeddings, with y = W_g^-1 (x - m_g), the
evidence is

    distance  y.p_c - p_c'W_g^-1 p_c/2        direction  r_g y.o_c/sqrt(o_c'W_g^-1 o_c)

Offsets are kept from a centre m_0 that does not move: with t = m_g - m_0, o_c = mu_c - m_0 - t, and p_c = a_c - R_K t,
where R_K shrinks the offset of a class of K samples. So a class costs two products with each row that changes, one with
t, and nothing else.

    symbol     field        shape      meaning (domain g of C_g classes, k changed rows)
    H          inverse      (d, d)     S_g + tau W0, kept as H^-1; W_g = H/(v_g + tau), and v_g + tau is `weight`
    m_0, t     start, move  (d,)
    mu_c - m_0 offsets      (C_g, d)
    a_c        shrunk       (C_g, d)   R_K (mu_c - m_0)
               offset_squares, shrunk_squares
                            (C_g,)     o'H^-1 o of the offsets, a'H^-1 a of the shrunk ones
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.algebra.hierarchy import DomainGaussians, Hierarchy, Prior, Reals
from hycal.algebra.low_rank import LowRank
from hycal.parallel.threads import map_parallel
from hycal.state.changes import ChangedClass, Changes
from hycal.validation import Doubles

_SHORTEST = 1e-24  # least squared length of a white mean whose direction counts


@dataclass(frozen=True, eq=False)
class DomainChange:
    """What changed in one domain.

    Attributes
    ----------
    number : int
    classes : tuple of ChangedClass
    places : tuple of int
        The old place of each of them in the domain, -1 if it is new.
    columns : ndarray of shape (C_g,)
        Of the classes that are in the domain now.
    source : ndarray of shape (C_g,)
        Old place of each in the domain, -1 if it changed.
    """

    number: int
    classes: tuple[ChangedClass, ...]
    places: tuple[int, ...]
    columns: npt.NDArray[np.intp]
    source: npt.NDArray[np.intp]

    @cached_property
    def nothing(self) -> bool:
        """Whether no class of the domain changed or has another place."""
        return not self.classes and np.array_equal(self.source, np.arange(len(self.source)))

    @cached_property
    def was(self) -> npt.NDArray[np.intp]:
        """Old place of each class in the domain, -1 if it is new."""
        was = self.source.copy()
        for one, place in zip(self.classes, self.places, strict=True):
            if one.column is not None:
                was[np.searchsorted(self.columns, one.column)] = place
        return was


@dataclass(frozen=True, eq=False)
class SteppedDomain:
    """The classes of one domain after small changes. The table above describes the arrays; the rest as before."""

    prior: Prior
    columns: npt.NDArray[np.intp]
    counts: npt.NDArray[np.int64]
    weight: float
    log_det_sum: float
    inverse: Doubles
    start: Doubles
    move: Doubles
    offsets: Reals
    shrunk: Reals
    offset_squares: Doubles
    shrunk_squares: Doubles

    @classmethod
    def of(cls, prior: Prior, domain: DomainGaussians, counts: npt.NDArray[np.int64]) -> SteppedDomain:
        """Return the domain as it is."""
        half = domain.whitening.astype(np.float64)
        d, weight = len(half), domain.weight
        return cls(
            prior=prior,
            columns=domain.columns,
            counts=counts,
            weight=weight,
            log_det_sum=2.0 * domain.log_det + d * float(np.log(weight)),
            inverse=half @ half.T / weight,
            start=domain.centre.astype(np.float64),
            move=np.zeros(d),
            offsets=domain.offsets,
            shrunk=domain.shrunk,
            offset_squares=np.einsum("cd,cd->c", domain.plain, domain.plain, dtype=np.float64) / weight,
            shrunk_squares=np.einsum("cd,cd->c", domain.posterior, domain.posterior, dtype=np.float64) / weight,
        )

    def after(self, step: DomainChange) -> SteppedDomain:
        """Return the domain after a change."""
        columns, source = step.columns, step.source
        change = LowRank.of_scatter(step.classes, len(self.start)).of_inverse(self.inverse)
        inverse, fresh = change.of(self.inverse), np.flatnonzero(source < 0)
        records = {one.column: one.new for one in step.classes}
        changed = [record for record in (records[column] for column in columns[fresh].tolist()) if record is not None]
        counts = _carried(self.counts, source, [record.count for record in changed])
        offsets = np.array([record.samples.mean - self.start for record in changed]).reshape(-1, len(self.start))
        shrunk = self.prior.posterior(offsets.astype(self.offsets.dtype), counts[fresh])
        kept = source[source >= 0]
        gone = np.setdiff1d(np.arange(len(self.counts)), kept)
        total = len(self.counts) * self.move + offsets.sum(axis=0, dtype=np.float64)
        total -= self.offsets[gone].sum(axis=0, dtype=np.float64)
        return replace(
            self,
            columns=columns,
            counts=counts,
            weight=self.weight + float(counts.sum() - self.counts.sum() - len(counts) + len(self.counts)),
            log_det_sum=self.log_det_sum + change.log_det,
            inverse=inverse,
            move=total / len(counts),
            offsets=_carried(self.offsets, source, offsets),
            shrunk=_carried(self.shrunk, source, shrunk),
            offset_squares=_carried(
                self.offset_squares - change.squares(self.offsets), source, _squares(offsets, inverse)
            ),
            shrunk_squares=_carried(
                self.shrunk_squares - change.squares(self.shrunk), source, _squares(shrunk, inverse)
            ),
        )

    @property
    def log_det(self) -> float:
        """log|W_g|/2."""
        return 0.5 * (self.log_det_sum - len(self.start) * float(np.log(self.weight)))

    @property
    def radius(self) -> float:
        """r_g."""
        return float(np.sqrt(np.mean(self._terms[0])))

    @cached_property
    def _terms(self) -> tuple[Doubles, Doubles, Doubles, npt.NDArray[np.intp]]:
        """p'W_g^-1 p and o'W_g^-1 o of each class, (C_g,), R_K t of each count, (., d), and the count of each class."""
        values, which = np.unique(self.counts, return_inverse=True)
        moves = self.prior.posterior(np.tile(self.move, (len(values), 1)), values).astype(np.float64)
        across = moves @ self.inverse
        p = self.shrunk_squares + np.einsum("kd,kd->k", across, moves)[which]
        for number, row in enumerate(across):
            own = np.flatnonzero(which == number) if len(values) > 1 else slice(None)
            p[own] -= 2.0 * (self.shrunk[own] @ row.astype(self.shrunk.dtype))
        along = self.inverse @ self.move
        o = self.offset_squares - 2.0 * (self.offsets @ along.astype(self.offsets.dtype)) + self.move @ along
        return self.weight * np.maximum(p, 0.0), self.weight * np.maximum(o, 0.0), moves, which

    @cached_property
    def _scoring(self) -> tuple[Reals, Reals, Reals, Reals]:
        """Return W_g^-1, m_g, the scale of directions and half squares of posterior means, all as the offsets are."""
        p, o, _, _ = self._terms
        scale = np.where(o > _SHORTEST, self.radius / np.sqrt(np.maximum(o, _SHORTEST)), 0.0)
        parts = self.weight * self.inverse, self.start + self.move, scale, 0.5 * p
        W, centre, scales, halves = (part.astype(self.offsets.dtype) for part in parts)
        return W, centre, scales, halves

    def evidence(self, X: npt.NDArray[np.floating]) -> tuple[Reals, Reals]:
        """Return q, (n,), and the evidence for classes by distance and by direction, (2, n, C_g), of queries."""
        inverse, centre, scale, halves = self._scoring
        moves, which = self._terms[2:]
        Y = (X - centre) @ inverse
        q: Reals = -0.5 * np.einsum("nd,nd->n", X - centre, Y) - self.log_det
        e = np.empty((2, len(X), len(self.counts)), q.dtype)
        np.matmul(Y, self.shrunk.T, out=e[0])
        e[0] -= (Y @ moves.T.astype(Y.dtype))[:, which]
        e[0] -= halves
        np.matmul(Y, self.offsets.T, out=e[1])
        e[1] -= (Y @ self.move.astype(Y.dtype))[:, None]
        e[1] *= scale
        return q, e


def _carried(rows: npt.NDArray[Any], source: npt.NDArray[np.intp], fresh: Any) -> npt.NDArray[Any]:
    """Return one row for each class: that of its old place, or one of `fresh`."""
    found = rows[source]
    if np.any(source < 0):
        found[source < 0] = fresh
    return found


def _squares(rows: npt.NDArray[np.floating], inverse: Doubles) -> Doubles:
    return np.einsum("cd,cd->c", rows @ inverse, rows, dtype=np.float64)


def hierarchy_after(hierarchy: Hierarchy, changes: Changes, *, named: bool) -> Hierarchy | None:
    """Return the hierarchy after `changes`; None if a domain is new or has no class left. Parameters as below."""
    domain_of = domains_after(hierarchy, changes, named=named)
    if domain_of is None:
        return None
    steps = changes_by_domain(hierarchy, changes, domain_of)
    means = [changes.after.ordered[column].samples.mean for column in changes.fresh]
    return stepped(hierarchy, changes, steps, domain_of, means=changes.carried(hierarchy.means, means))


def domains_after(hierarchy: Hierarchy, changes: Changes, *, named: bool) -> npt.NDArray[np.intp] | None:
    """Return the number of the domain of each class, (C,); None if a domain is new or has no class left.

    A class that is new joins the nearest of the domains that have classes of its name; of all domains if not `named`.
    """
    domain_of = hierarchy.domain_of[changes.source]
    old, new = changes.before, changes.after
    for column in changes.fresh.tolist():
        record, before = new.ordered[column], old.column_of.get(new.labels[column])
        if before is not None and old.ordered[before].domain == record.domain:
            domain_of[column] = hierarchy.domain_of[before]
            continue
        candidates = np.unique(hierarchy.domain_of[old.domains == record.domain] if named else hierarchy.domain_of)
        if not len(candidates):
            return None
        mean = record.samples.mean
        gaps = [float(np.sum((_centre(hierarchy.domains[number]) - mean) ** 2)) for number in candidates.tolist()]
        domain_of[column] = candidates[int(np.argmin(gaps))]
    everyone = len(np.unique(domain_of)) == len(hierarchy.domains)
    return domain_of if everyone else None


def _centre(domain: DomainGaussians | SteppedDomain) -> npt.NDArray[np.floating]:
    return domain.start + domain.move if isinstance(domain, SteppedDomain) else domain.centre


def changes_by_domain(hierarchy: Hierarchy, changes: Changes, domain_of: npt.NDArray[np.intp]) -> list[DomainChange]:
    """Return what changed in each domain; a class that changed its domain is gone in one and new in the other."""
    column_of = {id(changes.before.ordered[column]): column for column in changes.gone.tolist()}
    place = np.full(len(changes.before.ordered) + 1, -1)  # -1, the last, is the place of changed classes
    for domain in hierarchy.domains:
        place[domain.columns] = np.arange(len(domain.columns))
    by_domain: list[list[tuple[ChangedClass, int]]] = [[] for _ in hierarchy.domains]
    for one in changes.classes:
        column = -1 if one.old is None else column_of[id(one.old)]
        old = -1 if one.old is None else int(hierarchy.domain_of[column])
        new = -1 if one.column is None else int(domain_of[one.column])
        if old == new:
            by_domain[new].append((one, int(place[column])))
            continue
        if old >= 0:
            by_domain[old].append((ChangedClass(one.old, None, None), int(place[column])))
        if new >= 0:
            by_domain[new].append((ChangedClass(None, one.new, one.column), -1))
    found = []
    for number, parts in enumerate(by_domain):
        columns = np.flatnonzero(domain_of == number)
        classes, places = zip(*parts, strict=True) if parts else ((), ())
        found.append(DomainChange(number, classes, places, columns, place[changes.source[columns]]))
    return found


def stepped(
    hierarchy: Hierarchy,
    changes: Changes,
    steps: Sequence[DomainChange],
    domain_of: npt.NDArray[np.intp],
    *,
    means: Reals,
) -> Hierarchy:
    """Return the hierarchy after the `steps` of its domains, with the class `means`."""
    counts = changes.before.counts
    domains = map_parallel(
        lambda step: _domain_after(hierarchy, step, counts), steps, [len(one.classes) for one in steps]
    )
    return Hierarchy(hierarchy.prior, tuple(domains), domain_of, means)


def _domain_after(hierarchy: Hierarchy, change: DomainChange, counts: npt.NDArray[np.int64]) -> Any:
    """Return a domain after its change; `counts` are those of all classes before."""
    domain: Any = hierarchy.domains[change.number]
    if change.nothing:
        return _moved(domain, change.columns)
    if isinstance(domain, DomainGaussians):
        domain = SteppedDomain.of(hierarchy.prior, domain, counts[domain.columns])
    return domain.after(change)


def _moved(domain: Any, columns: npt.NDArray[np.intp]) -> Any:
    """Return the same domain with its classes at other columns."""
    if np.array_equal(domain.columns, columns):
        return domain
    other = replace(domain, columns=columns)
    kept = {name: value for name, value in vars(domain).items() if name in ("linear", "_terms", "_scoring")}
    vars(other).update(kept)
    return other
