"""All evidence of HierarchicalHyCal: domains and their classes, what else gives evidence in each, and the weights.

`Posterior.after` follows a small change. B of the prior, the groups of classes and the weight of domains were fitted to
all samples; they stay until one sample in 400 changed. Models of fewer than 1,000 samples always fit them anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.algebra.hierarchy import Hierarchy
from hycal.algebra.hierarchy_covariance import ClassCovariances, covariances_pay
from hycal.algebra.hierarchy_kernel import KernelRegression, kernel_pays
from hycal.algebra.hierarchy_kernel_step import SteppedKernel
from hycal.algebra.hierarchy_step import DomainChange, changes_by_domain, domains_after, stepped
from hycal.algebra.softmax import LOGIT_SCALE
from hycal.state.changes import ChangedClass, Changes, is_due
from hycal.state.records import ClassRecord, Records
from hycal.validation import Doubles, Floats

# The kinds of evidence, as weights are ordered
KINDS = ("distance", "direction", "kernel", "text", "covariance", "count")
KERNEL, COVARIANCE = KINDS.index("kernel"), KINDS.index("covariance")
_ONE_IN = 400  # samples may have changed since the prior was fitted
_FARTHEST = 1.5e-5  # squared, that the mean of a class may move for each class of the model, where the prior is kept


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of evidence: of each kind in each domain, (G, 6); and that of domains."""

    classes: Doubles
    domain: float


@dataclass(frozen=True, eq=False)
class Sources:
    """What gives evidence in a domain beside its Gaussians: a regression, covariances, scaled texts; None if absent."""

    kernel: KernelRegression | SteppedKernel | None
    covariances: ClassCovariances | None
    text: Floats | None

    def after(self, step: DomainChange, records: Records) -> Sources | None:
        """Return the sources after a change; None if the domain has other ones then."""
        if step.nothing:
            return self
        counts = records.counts[step.columns]
        several = bool(np.any(counts > 1))
        pays = several and kernel_pays(int(counts.sum()), len(counts))
        if pays != (self.kernel is not None) or self._lacks_text(step):
            return None
        covariances = None
        if several and covariances_pay(counts, records.width):
            covariances = ClassCovariances.fit(*_members(step, records))
        return Sources(self._kernel_after(step, records), covariances, self._text_after(step))

    def _kernel_after(self, step: DomainChange, records: Records) -> KernelRegression | SteppedKernel | None:
        if self.kernel is None:
            return None
        found = SteppedKernel.of(self.kernel).after(step)
        return KernelRegression.fit(*_members(step, records)) if found.worn else found

    def _lacks_text(self, step: DomainChange) -> bool:
        """Whether a class without text is new in a domain that uses texts."""
        return self.text is not None and any(one.new is not None and one.new.text is None for one in step.classes)

    def _text_after(self, step: DomainChange) -> Floats | None:
        if self.text is None:
            return None
        fresh = {one.column: one.new for one in step.classes if one.new is not None}
        found = self.text[step.source]
        for place in np.flatnonzero(step.source < 0).tolist():
            found[place] = scaled_text(fresh[int(step.columns[place])])
        return found


@dataclass(frozen=True, eq=False)
class Posterior:
    """Domains and their classes, what else gives evidence in each domain, and the weights of evidence."""

    hierarchy: Hierarchy
    # Of each domain. A regression or covariances that the weights leave out are among them: the other weights were
    # fitted beside them.
    sources: tuple[Sources, ...]
    weights: Weights
    records: Records  # what all this was derived from
    build: Callable[[Records], Posterior]  # fits it anew, to the same records
    changed: int = 0  # samples that changed since it was fitted; 0 right after

    @cached_property
    def kernels(self) -> tuple[Any, ...]:  # `KernelRegression` right after a fit
        """The regression of each domain, None where it has no weight."""
        return tuple(source.kernel if weight else None for source, weight in self._weighed(KERNEL))

    @cached_property
    def covariances(self) -> tuple[ClassCovariances | None, ...]:
        """The covariances of each domain, None where they have no weight."""
        return tuple(source.covariances if weight else None for source, weight in self._weighed(COVARIANCE))

    @property
    def texts(self) -> tuple[Floats | None, ...]:
        """The texts of each domain, None where they are not used."""
        return tuple(source.text for source in self.sources)

    @cached_property
    def count_evidence(self) -> tuple[Doubles, ...]:
        """The evidence of the classes of each domain by their counts."""
        return tuple(count_evidence(self.records.counts[domain.columns]) for domain in self.hierarchy.domains)

    def _weighed(self, kind: int) -> Iterator[tuple[Sources, float]]:
        return zip(self.sources, self.weights.classes[:, kind].tolist(), strict=True)

    @cached_property
    def fitted(self) -> Posterior:
        """The same, fitted to the records that it has now."""
        return self if not self.changed else self.build(self.records)

    def after(self, records: Records, *, named: bool) -> Posterior | None:
        """Return what follows for other records, with the old weights; None if it has to be fitted anew."""
        changes = Changes.between(self.records, records)
        if not _keeps_prior(changes, self.changed):
            return None
        domain_of = domains_after(self.hierarchy, changes, named=named)
        if domain_of is None:
            return None
        steps = changes_by_domain(self.hierarchy, changes, domain_of)
        sources = [source.after(step, records) for source, step in zip(self.sources, steps, strict=True)]
        known = tuple(source for source in sources if source is not None)
        none = self.hierarchy.means[:0]  # scoring does without
        hierarchy = stepped(self.hierarchy, changes, steps, domain_of, means=none)
        if hierarchy is None or len(known) < len(steps):
            return None
        changed = self.changed + max(changes.samples, 1)
        return replace(self, hierarchy=hierarchy, sources=known, records=records, changed=changed)


def _keeps_prior(changes: Changes, changed: int) -> bool:
    """Whether the prior may stay, after `changed` samples before.

    B holds the means of all classes. It has no direction of a class that it never saw, and one of few classes has much
    of those that it saw: with this bound, probabilities differ by less than 0.02 from those of a new fit.
    """
    samples, most = int(changes.after.counts.sum()), _FARTHEST * len(changes.after.counts)
    if not changes.few or is_due(changed + changes.samples, samples, one_in=_ONE_IN):
        return False
    return all(_moved(one) <= most for one in changes.classes)


def _moved(one: ChangedClass) -> float:
    """Return how far the mean of a class moved, squared; inf if the class is new or gone."""
    if one.old is None or one.new is None or not one.old.count or not one.new.count:
        return np.inf
    return float(np.sum((one.new.mean - one.old.mean) ** 2))


def _members(step: DomainChange, records: Records) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Return the samples of a domain, and the place of the class of each."""
    members = [records.ordered[column] for column in step.columns.tolist()]
    rows = np.concatenate([member.samples.rows for member in members])
    return rows, np.repeat(np.arange(len(members)), [member.count for member in members])


def count_evidence(counts: npt.NDArray[np.int64]) -> Doubles:
    """Return log(K/K_c) of classes of K_c samples, (C_g,), K being the geometric mean: 0 where all counts are equal.

    The other evidence favours a class about as a prior in proportion to K_c would: regressions and held-out samples
    see more of large classes. Queries are taken to be of all classes alike.
    """
    logarithms = np.log(counts)
    return logarithms.mean() - logarithms


def scaled_text(record: ClassRecord) -> Floats:
    """Return the text of a class times the scale of CLIP's logits."""
    assert record.text is not None
    return np.float32(LOGIT_SCALE) * record.text
