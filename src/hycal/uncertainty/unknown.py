"""Whether a query belongs to any learned class at all.

Three questions, each answered on the scale of held-out training samples (mean 0, standard deviation 1). The worst
answer counts most: familiarity is -log sum exp(-answer).

    density   does it fit a domain and a class there? The largest log density of a class, Gaussians as in
              `hycal.algebra.hierarchy`.
    relative  does it fit a class better than the background? Half the Mahalanobis distance to the mean of all class
              means under the covariance of all data, less that to the nearest class under the covariance within.
    direction does it point where a class does? The largest cosine in the white space of the most likely domain.

Unknown domains fail the first, unknown classes of known domains the others (relative Mahalanobis distance, Ren et al.,
A simple fix to Mahalanobis distance for improving near-OOD detection, 2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp

from hycal.algebra.hierarchy import Hierarchy
from hycal.algebra.hierarchy_fit import build
from hycal.algebra.white_space import LEAST_LEFT
from hycal.errors import HyCalError
from hycal.parallel.threads import in_chunks
from hycal.state.records import Records
from hycal.state.selection import Selection, spread_rows
from hycal.validation import Doubles, Floats

_HELD_OUT = 1000
_PRIOR_RIDGE = 0.5  # of the hierarchy
_RIDGE = 0.05  # of the relative distance, which gains from fine directions
_LEAST_SPREAD = 1e-9


@dataclass(frozen=True, eq=False)
class Familiarity:
    """How well queries fit what was learned.

    Attributes
    ----------
    hierarchy : Hierarchy
    within, total : ndarrays of shape (d, d)
        Precision within classes, and of the background.
    centres, spreads : ndarrays of shape (3,)
        Of the three measures, over held-out samples.
    held_out : ndarray of shape (n,)
        The familiarity of held-out samples, sorted.
    """

    hierarchy: Hierarchy
    within: Doubles
    total: Doubles
    centres: Doubles
    spreads: Doubles
    held_out: Doubles

    @classmethod
    def of(cls, records: Records) -> Familiarity:
        """Measure held-out samples, about as many of each class; every class must have samples."""
        if not records.by_label:
            raise HyCalError("No class has images yet, so nothing can be told from the unknown. Learn some first.")
        hierarchy = build(records, strength=1.0, ridge=_PRIOR_RIDGE)
        offsets = hierarchy.means - hierarchy.means.mean(axis=0)
        within = _sharper(hierarchy.prior.within)
        total = within + offsets.T @ offsets / max(len(offsets) - 1, 1)
        bare = cls(hierarchy, _inverse(within), _inverse(total), np.zeros(3), np.ones(3), np.empty(0))
        rows = spread_rows(records, np.arange(len(records.counts)), _HELD_OUT)
        measures = bare._held_out_measures(Selection.of(records, rows))
        if not len(rows):
            return bare
        centres = measures.mean(axis=0)
        spreads = np.maximum(measures.std(axis=0), _LEAST_SPREAD)
        held_out = np.sort(_worst((measures - centres) / spreads))
        return cls(hierarchy, bare.within, bare.total, centres, spreads, held_out)

    def __call__(self, X: Floats) -> Doubles:
        """Return the familiarity of queries: 0 is that of a typical sample, -1 one standard deviation less."""
        found = np.empty(len(X))

        def measure(rows: slice) -> None:
            found[rows] = _worst((self._measures(X[rows].astype(np.float64)) - self.centres) / self.spreads)

        in_chunks(measure, len(X), numbers_per_row=4 * len(self.hierarchy.means))
        return found

    def threshold(self, error: float) -> float:
        """Return what a share of `error` of held-out samples falls short of."""
        if not len(self.held_out):
            raise HyCalError(
                "No class has two samples, so none can be held out to set a threshold. Learn a second image of a class."
            )
        return float(np.quantile(self.held_out, error))

    def _measures(self, X: Doubles) -> Doubles:
        q, e = zip(*(domain.evidence(X) for domain in self.hierarchy.domains), strict=True)
        return self._answers(X, np.stack(q, axis=1), e, self._squares(X))

    def _answers(self, X: Doubles, q: Doubles, e: Sequence[Doubles], squares: Doubles) -> Doubles:
        """Return the three measures from the evidence in each domain and the distances to classes."""
        each = np.arange(len(X))
        density = q + np.stack([distance.max(axis=1) for distance, _ in e], axis=1)
        best = density.argmax(axis=1)
        lengths = np.sqrt(np.maximum(-2.0 * (q + [domain.log_det for domain in self.hierarchy.domains]), 1e-18))
        radii = [max(domain.radius, 1e-9) for domain in self.hierarchy.domains]
        cosines = np.stack([direction.max(axis=1) for _, direction in e], axis=1) / (radii * lengths)
        return np.stack([density[each, best], self._relative(X, squares), cosines[each, best]], axis=1)

    def _held_out_measures(self, samples: Selection) -> Doubles:
        """Return the measures of samples, each without itself: in the density, its class mean and the precision."""
        q, e = (part.astype(np.float64) for part in self.hierarchy.held_out(samples))
        X, n = samples.X.astype(np.float64), samples.counts
        gap = X - self.hierarchy.means[samples.own]
        prior = self.hierarchy.prior
        a = n / (n - 1.0) * (prior.influence - 1.0) / prior.strength * (1.0 - _RIDGE) / (1.0 - _PRIOR_RIDGE)
        along = gap @ self.within
        left = np.maximum(1.0 - a * np.einsum("nd,nd->n", along, gap), LEAST_LEFT)
        squares = self._squares(X)
        to_own = np.einsum("nd,nd->n", along, X)[:, None] - along @ self.hierarchy.means.T
        squares += (a / left)[:, None] * to_own**2
        own = samples.each, samples.own
        squares[own] = (n / (n - 1.0)) ** 2 * np.einsum("nd,nd->n", along, gap) / left
        return self._answers(X, q, [e[:, :, domain.columns] for domain in self.hierarchy.domains], squares)

    def _squares(self, X: Doubles) -> Doubles:
        """Return the squared Mahalanobis distances to all class means."""
        PM, own = self._white_means
        squares: Doubles = np.einsum("nd,nd->n", X @ self.within, X)[:, None] - 2.0 * X @ PM.T + own
        return squares

    @cached_property
    def _white_means(self) -> tuple[Doubles, Doubles]:
        """Class means times the precision, and that times the means again: the same for all queries."""
        PM = self.hierarchy.means @ self.within
        return PM, np.einsum("cd,cd->c", self.hierarchy.means, PM)

    def _relative(self, X: Doubles, squares: Doubles) -> Doubles:
        Y = X - self.hierarchy.means.mean(axis=0)
        background: Doubles = np.einsum("nd,nd->n", Y @ self.total, Y)
        return 0.5 * (background - squares.min(axis=1))


def _sharper(within: Doubles) -> Doubles:
    """Return W0 with the ridge of the relative distance: (1 - e) S/v + e t I for another e."""
    d = len(within)
    level = np.trace(within) / d
    sharper: Doubles = (1.0 - _RIDGE) / (1.0 - _PRIOR_RIDGE) * (within - _PRIOR_RIDGE * level * np.eye(d))
    sharper.flat[:: d + 1] += _RIDGE * level
    return sharper


def _worst(answers: Doubles) -> Doubles:
    worst: Doubles = -logsumexp(-answers, axis=1)
    return worst


def _inverse(lower: Doubles) -> Doubles:
    inverse: Doubles = cho_solve(cho_factor(lower, lower=True), np.eye(len(lower)))
    return inverse


def check_share(name: str, share: float) -> None:
    """Refuse what is not a share."""
    if not 0.0 < share < 1.0:
        raise HyCalError(f"{name} is {share}; expected a share between 0 and 1, such as 0.05 or 0.9.")


def rejected(familiarity: Doubles, threshold: float) -> npt.NDArray[np.bool_]:
    """Return which queries are unknown."""
    return np.asarray(familiarity < threshold)
