"""A hierarchy after a small change: only the domains that changed are computed again, from their moments.

The scatter S_g of a domain follows by a change of low rank, in float64; class means and W0 of all data follow, too. So
a domain that changed has the white space of a fit to all samples, up to rounding, for one factorisation. Until the next
fit stay: B, which shrinks class means, and W0 in domains that did not change.
`hycal.algebra.hierarchy` defines the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hycal.algebra.hierarchy import DomainGaussians, Hierarchy, Reals
from hycal.algebra.hierarchy_fit import changed_domain, changed_prior
from hycal.algebra.low_rank import LowRank
from hycal.parallel.threads import map_parallel
from hycal.state.changes import ChangedClass, Changes
from hycal.validation import Doubles, Floats


@dataclass(frozen=True, eq=False)
class DomainChange:
    """What changed in one domain."""

    number: int
    classes: tuple[ChangedClass, ...]
    places: tuple[int, ...]  # the old place of each of them in the domain, -1 if it is new
    columns: npt.NDArray[np.intp]  # (C_g,): of the classes that are in the domain now
    source: npt.NDArray[np.intp]  # (C_g,): old place of each in the domain, -1 if it changed

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
        gaps = [float(np.sum((hierarchy.domains[number].centre - mean) ** 2)) for number in candidates.tolist()]
        domain_of[column] = candidates[int(np.argmin(gaps))]
    everyone = len(np.unique(domain_of)) == len(hierarchy.domains)
    return domain_of if everyone else None


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
) -> Hierarchy | None:
    """Return the hierarchy after the `steps` of its domains, with the class `means`; None if W0 is of another kind."""
    scatters = [_scatter_after(hierarchy.domains[step.number], step) for step in steps]
    counts = changes.after.counts
    prior = changed_prior(hierarchy.prior, scatters, int(counts.sum()) - len(counts))
    if prior is None:
        return None

    def after(step: DomainChange) -> DomainGaussians:
        domain = hierarchy.domains[step.number]
        if step.nothing:
            return _moved(domain, step.columns)
        rows, scatter = _means_after(domain, step), scatters[step.number]
        return changed_domain(domain, prior, step.columns, counts[step.columns], rows, scatter, step.source)

    domains = map_parallel(after, steps, [len(one.classes) for one in steps])
    return Hierarchy(prior, tuple(domains), domain_of, means)


def _scatter_after(domain: DomainGaussians, step: DomainChange) -> Doubles:
    """Return S_g after a change."""
    if not step.classes:
        return domain.scatter
    return LowRank.of_scatter(step.classes, len(domain.centre)).added_to(domain.scatter)


def _means_after(domain: DomainGaussians, step: DomainChange) -> Floats:
    """Return the means of the classes of a domain after a change, (C_g, d)."""
    means: Floats = (domain.centre + domain.offsets).astype(np.float32)[step.source]
    changed = {one.column: one.new for one in step.classes if one.new is not None}
    for place in np.flatnonzero(step.source < 0).tolist():
        means[place] = changed[int(step.columns[place])].samples.mean
    return means


def _moved(domain: DomainGaussians, columns: npt.NDArray[np.intp]) -> DomainGaussians:
    """Return the same domain with its classes at other columns."""
    if np.array_equal(domain.columns, columns):
        return domain
    other = replace(domain, columns=columns)
    vars(other).update({name: value for name, value in vars(domain).items() if name == "linear"})
    return other
