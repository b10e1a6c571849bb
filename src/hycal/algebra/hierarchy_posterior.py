"""All evidence of HierarchicalHyCal: domains and their classes, what else gives evidence in each, and the weights.

`Posterior.after` follows a small change. The prior of the hierarchy, the groups of classes and the weights of evidence
were fitted to all samples; they stay until `hycal.state.changes.is_due`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.algebra.hierarchy import Hierarchy
from hycal.algebra.hierarchy_covariance import ClassCovariances
from hycal.algebra.hierarchy_kernel import KernelRegression
from hycal.algebra.hierarchy_kernel_step import SteppedKernel
from hycal.algebra.hierarchy_step import DomainChange, changes_by_domain, domains_after, stepped
from hycal.algebra.softmax import LOGIT_SCALE
from hycal.state.changes import Changes, is_due
from hycal.state.records import ClassRecord, Records
from hycal.validation import Doubles, Floats


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of evidence: of each kind in each domain, (G, 5); and that of domains."""

    classes: Doubles
    domain: float


@dataclass(frozen=True, eq=False)
class Posterior:
    """Domains and their classes, what else gives evidence in each domain, and the weights of evidence.

    That is a regression, the covariances of classes, and scaled texts; where a domain has none, None.

    Attributes
    ----------
    records : Records
        What all this was derived from.
    changed : int
        Samples that changed since it was fitted; 0 right after.
    build : callable
        Fits it anew, to the same records.
    """

    hierarchy: Hierarchy
    kernels: tuple[Any, ...]  # KernelRegression, SteppedKernel or None
    covariances: tuple[ClassCovariances | None, ...]
    texts: tuple[Floats | None, ...]
    weights: Weights
    records: Records
    build: Callable[[Records], Posterior]
    changed: int = 0

    @cached_property
    def fitted(self) -> Posterior:
        """The same, fitted to the records that it has now."""
        return self if not self.changed else self.build(self.records)

    def after(self, records: Records, *, named: bool) -> Posterior | None:
        """Return what follows for other records; None if it has to be fitted anew."""
        changes = Changes.between(self.records, records)
        if not changes.few or is_due(self.changed + changes.samples, int(records.counts.sum())):
            return None
        domain_of = domains_after(self.hierarchy, changes, named=named)
        if domain_of is None:
            return None
        steps = changes_by_domain(self.hierarchy, changes, domain_of)
        if any(self._lacks_text(step) for step in steps):
            return None
        none = self.hierarchy.means[:0]  # scoring does without
        return replace(
            self,
            hierarchy=stepped(self.hierarchy, changes, steps, domain_of, means=none),
            kernels=tuple(self._kernel_after(step, records) for step in steps),
            covariances=tuple(self._covariances_after(step, records) for step in steps),
            texts=tuple(self._texts_after(step) for step in steps),
            records=records,
            changed=self.changed + max(changes.samples, 1),
        )

    def _kernel_after(self, step: DomainChange, records: Records) -> KernelRegression | SteppedKernel | None:
        kernel = self.kernels[step.number]
        if kernel is None or step.nothing:
            return kernel
        found = (SteppedKernel.of(kernel) if isinstance(kernel, KernelRegression) else kernel).after(step)
        return KernelRegression.fit(*_members(step, records)) if found.worn else found

    def _covariances_after(self, step: DomainChange, records: Records) -> ClassCovariances | None:
        covariances = self.covariances[step.number]
        if covariances is None or step.nothing:
            return covariances
        return ClassCovariances.fit(*_members(step, records))

    def _lacks_text(self, step: DomainChange) -> bool:
        """Whether a class without text is new in a domain that uses texts."""
        if self.texts[step.number] is None:
            return False
        return any(one.new is not None and one.new.text is None for one in step.classes)

    def _texts_after(self, step: DomainChange) -> Floats | None:
        texts = self.texts[step.number]
        if texts is None or step.nothing:
            return texts
        fresh = {one.column: one.new for one in step.classes if one.new is not None}
        found = texts[step.source]
        for place in np.flatnonzero(step.source < 0).tolist():
            found[place] = scaled_text(fresh[int(step.columns[place])])
        return found


def _members(step: DomainChange, records: Records) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Return the samples of a domain, and the place of the class of each."""
    members = [records.ordered[column] for column in step.columns.tolist()]
    rows = np.concatenate([member.samples.rows for member in members])
    return rows, np.repeat(np.arange(len(members)), [member.count for member in members])


def scaled_text(record: ClassRecord) -> Floats:
    """Return the text of a class times the scale of CLIP's logits."""
    assert record.text is not None
    return np.float32(LOGIT_SCALE) * record.text
