"""Whether a query belongs to any learned class.

Three measures are standardised on held-out training samples (mean 0, standard deviation 1). The worst one counts most:
familiarity is -log sum exp(-measure).

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
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from hycal.algebra.hierarchy import Hierarchy
from hycal.algebra.hierarchy_fit import fit_hierarchy
from hycal.algebra.hierarchy_held_out import held_out_evidence
from hycal.algebra.relative_distance import RelativeDistance
from hycal.errors import HyCalError
from hycal.parallel.threads import run_in_chunks
from hycal.state.records import Records
from hycal.state.selection import Selection, spread_rows
from hycal.validation import Doubles, Floats

_HELD_OUT = 1000  # samples
_HIERARCHY_RIDGE = 0.5
_RELATIVE_RIDGE = 0.05  # the relative distance gains from fine directions
_LEAST_SPREAD = 1e-9  # of a measure, and of a radius
_LEAST_SQUARE = 1e-18  # of |z|


@dataclass(frozen=True, eq=False)
class Familiarity:
    """How well queries fit the learned classes.

    Attributes
    ----------
    hierarchy : Hierarchy
    relative : RelativeDistance
    centres, spreads : ndarrays of shape (3,)
        Mean and standard deviation of the measures of held-out samples.
    held_out : ndarray of shape (n,)
        Familiarity of held-out samples, sorted; empty if no class has two samples.
    """

    hierarchy: Hierarchy
    relative: RelativeDistance
    centres: Doubles
    spreads: Doubles
    held_out: Doubles

    @classmethod
    def of(cls, records: Records) -> Familiarity:
        """Fit a hierarchy and measure held-out samples, spread evenly over classes; every class must have samples."""
        if not records.by_label:
            raise HyCalError("No class has images yet, so nothing can be told from the unknown. Learn some first.")
        hierarchy = fit_hierarchy(records, strength=1.0, ridge=_HIERARCHY_RIDGE)
        relative = RelativeDistance.of(hierarchy, ridge=_RELATIVE_RIDGE, hierarchy_ridge=_HIERARCHY_RIDGE)
        rows = spread_rows(records, np.arange(len(records.counts)), _HELD_OUT)
        if not len(rows):
            return cls(hierarchy, relative, np.zeros(3), np.ones(3), np.empty(0))
        measures = _held_out_measures(hierarchy, relative, Selection.of(records, rows))
        centres = measures.mean(axis=0)
        spreads = np.maximum(measures.std(axis=0), _LEAST_SPREAD)
        return cls(hierarchy, relative, centres, spreads, np.sort(_combined((measures - centres) / spreads)))

    def __call__(self, X: Floats) -> Doubles:
        """Return the familiarity of queries: 0 is that of a typical sample, -1 one standard deviation less."""
        familiarity = np.empty(len(X))

        def fill(rows: slice) -> None:
            measures = _measures(self.hierarchy, self.relative, X[rows].astype(np.float64))
            familiarity[rows] = _combined((measures - self.centres) / self.spreads)

        run_in_chunks(fill, len(X), numbers_per_row=4 * len(self.hierarchy.means))
        return familiarity

    def threshold(self, error: float) -> float:
        """Return the familiarity that a share of `error` of the held-out samples does not reach."""
        if not len(self.held_out):
            raise HyCalError(
                "No class has two samples, so none can be held out to set a threshold. Learn a second image of a class."
            )
        return float(np.quantile(self.held_out, error))


def _measures(hierarchy: Hierarchy, relative: RelativeDistance, X: Doubles) -> Doubles:
    """Return the three measures of queries."""
    q, e = zip(*(domain.evidence(X) for domain in hierarchy.domains), strict=True)
    density, direction = _density_and_direction(hierarchy, np.stack(q, axis=1), e)
    return np.stack([density, relative(X), direction], axis=1)


def _held_out_measures(hierarchy: Hierarchy, relative: RelativeDistance, samples: Selection) -> Doubles:
    """Return the three measures of learned samples, each without itself."""
    q, e = (part.astype(np.float64) for part in held_out_evidence(hierarchy, samples))
    density, direction = _density_and_direction(hierarchy, q, [e[:, :, domain.columns] for domain in hierarchy.domains])
    return np.stack([density, relative.held_out(samples), direction], axis=1)


def _density_and_direction(hierarchy: Hierarchy, q: Doubles, e: Sequence[Doubles]) -> tuple[Doubles, Doubles]:
    """Return the log density of the best class, and the largest cosine in its domain, (n,) each."""
    log_dets, radii = zip(
        *((domain.log_det, max(domain.radius, _LEAST_SPREAD)) for domain in hierarchy.domains), strict=True
    )
    density = q + np.stack([distance.max(axis=1) for distance, _ in e], axis=1)
    lengths = np.sqrt(np.maximum(-2.0 * (q + log_dets), _LEAST_SQUARE))  # |z|
    cosines = np.stack([direction.max(axis=1) for _, direction in e], axis=1) / (radii * lengths)
    best = np.arange(len(q)), density.argmax(axis=1)
    return density[best], cosines[best]


def _combined(measures: Doubles) -> Doubles:
    """Return -log sum exp(-measure) over the standardised measures."""
    familiarity: Doubles = -logsumexp(-measures, axis=1)
    return familiarity


def check_share(name: str, share: float) -> None:
    """Raise unless `share` is between 0 and 1."""
    if not 0.0 < share < 1.0:
        raise HyCalError(f"{name} is {share}; expected a share between 0 and 1, such as 0.05 or 0.9.")


def rejected(familiarity: Doubles, threshold: float) -> npt.NDArray[np.bool_]:
    """Return which queries are unknown."""
    return np.asarray(familiarity < threshold)
