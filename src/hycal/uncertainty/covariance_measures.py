"""Three measures of how well a query fits the learned classes, all from the covariances of a hierarchy.

They are standardised on held-out samples (mean 0, standard deviation 1), and the worst one counts most: together they
are -log sum exp(-measure).

    column  measure    meaning
    0       density    largest log density of a class, with the Gaussians of `hycal.algebra.hierarchy`
    1       relative   relative Mahalanobis distance, `hycal.algebra.relative_distance`
    2       direction  largest cosine with a class mean in the white space of the most likely domain

Queries of unknown domains have a low density. Queries of unknown classes of known domains fit no class better than the
background, and point in the direction of none.

    symbol      shape         meaning (n queries, G domains, C_g classes in domain g)
    q           (n, G)        -|z|^2/2 - log|W_g|/2
    e           G (2, n, C_g) evidence for classes by distance, and by direction: r_g z.u_c
    r_g         (G,)          radius of domain g
    measures    (n, 3)        columns as above
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hycal.algebra.hierarchy import Hierarchy, Reals
from hycal.algebra.hierarchy_fit import fit_hierarchy
from hycal.algebra.hierarchy_held_out import held_out_evidence
from hycal.algebra.hierarchy_step import hierarchy_after
from hycal.algebra.relative_distance import RelativeDistance
from hycal.algebra.softmax import log_sum_exp
from hycal.state.changes import Changes
from hycal.state.records import Records
from hycal.state.selection import Selection
from hycal.validation import Doubles

_HIERARCHY_RIDGE = 0.5
_RELATIVE_RIDGE = 0.05  # the relative distance gains from fine directions
_LEAST_SPREAD = 1e-9  # of a measure, and of a radius
_LEAST_SQUARE = 1e-18  # of |z|


@dataclass(frozen=True, eq=False)
class CovarianceMeasures:
    """The measures, and their mean and standard deviation over held-out samples, (3,) each."""

    hierarchy: Hierarchy
    relative: RelativeDistance
    centres: Doubles
    spreads: Doubles

    @classmethod
    def fitted(cls, records: Records, samples: Selection) -> tuple[CovarianceMeasures, Doubles]:
        """Fit a hierarchy; return the measures, and those of held-out `samples` together, (n,)."""
        hierarchy = fit_hierarchy(records, strength=1.0, ridge=_HIERARCHY_RIDGE)
        relative = RelativeDistance.of(hierarchy, ridge=_RELATIVE_RIDGE, hierarchy_ridge=_HIERARCHY_RIDGE)
        found = _measures(hierarchy, *held_out_evidence(hierarchy, samples), relative.held_out(samples))
        known = cls(hierarchy, relative, found.mean(axis=0), np.maximum(found.std(axis=0), _LEAST_SPREAD))
        return known, known._together(found)

    def after(self, changes: Changes) -> CovarianceMeasures | None:
        """Return the measures after `changes`: what was fitted to all samples stays; None if a domain comes or goes."""
        hierarchy = hierarchy_after(self.hierarchy, changes, named=True)
        return (
            None
            if hierarchy is None
            else replace(self, hierarchy=hierarchy, relative=self.relative.after(changes, hierarchy))
        )

    def __call__(self, X: Doubles) -> Doubles:
        """Return the measures of queries together, (n,)."""
        return self._together(_measures(self.hierarchy, *self.hierarchy.evidence(X), self.relative(X)))

    def _together(self, measures: Doubles) -> Doubles:
        """Return -log sum exp(-measure) over the standardised measures."""
        return -log_sum_exp((self.centres - measures) / self.spreads)


def _measures(hierarchy: Hierarchy, q: Reals, e: Sequence[Reals], relative: Doubles) -> Doubles:
    """Return the three measures."""
    log_dets, radii = zip(
        *((domain.log_det, max(domain.radius, _LEAST_SPREAD)) for domain in hierarchy.domains), strict=True
    )
    density = q + np.stack([distance.max(axis=1) for distance, _ in e], axis=1)
    lengths = np.sqrt(np.maximum(-2.0 * (q + log_dets), _LEAST_SQUARE))  # |z|
    cosines = np.stack([direction.max(axis=1) for _, direction in e], axis=1) / (radii * lengths)
    best = np.arange(len(q)), density.argmax(axis=1)
    return np.stack([density[best], relative, cosines[best]], axis=1)
