"""GDA: Gaussian discriminant analysis beside CLIP's zero-shot classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hycal.algebra.classwise_head import text_head
from hycal.algebra.covariance import NO_SPREAD
from hycal.algebra.discriminant import Precision, WithinClass, sealed_freedom, sealed_within
from hycal.algebra.discriminant_step import SteppedDiscriminant
from hycal.algebra.domain_discriminant import DomainDiscriminants, domain_covariances, sealed_covariances
from hycal.algebra.features import Identity, LinearHead
from hycal.algebra.softmax import LOGIT_SCALE
from hycal.classifiers.families import (
    DOMAIN_CONSTRAINTS,
    STRENGTHS,
    ZERO_SHOT,
    Discriminant,
    ZeroShotFusion,
    score_in_folds,
    text_weights,
)
from hycal.estimator import Interval
from hycal.state.records import Records
from hycal.state.sealed import SealedRecords
from hycal.state.selection import Selection
from hycal.validation import Doubles, Floats
from hycal.views.scorer import VIEWS


@dataclass(frozen=True, eq=False)
class _WithNames:
    """A discriminant of many samples, the zero-shot classifier to add or None, and a constant."""

    discriminant: SteppedDiscriminant
    names: LinearHead | None
    constant: float

    @property
    def changed(self) -> int:
        """Samples that changed since it was built."""
        return self.discriminant.changed

    @property
    def weights(self) -> Doubles:
        """Of the embeddings, (C, d)."""
        return self.discriminant.weights + (0.0 if self.names is None else self.names.weights)

    @property
    def bias(self) -> Doubles:
        """Of the classes, (C,)."""
        return self.discriminant.bias + self.constant

    def __call__(self, X: Floats, columns: npt.NDArray[np.intp] | None = None) -> Doubles:
        """Return (n, C) scores, or those of the classes at `columns`."""
        scores = self.discriminant(X, columns) + self.constant
        return scores if self.names is None else scores + self.names(X, columns)


class GDA(Discriminant, ZeroShotFusion):
    r"""A Gaussian per class with one shared precision, added to the zero-shot logits.

    .. math::
        s_c = 100 \, x^\top t_c
              + \alpha (x^\top \Lambda \mu_c - \tfrac12 \mu_c^\top \Lambda \mu_c - \log C), \quad
        \Lambda = d \, (S + \tfrac{\operatorname{tr} S}{N - 1} I)^{-1}

    with S the within-class scatter: the empirical Bayes ridge estimate of the precision, which has no parameter.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the discriminant. The authors search it on a validation set; there is none here.
    zero_shot : {"fuse", "none"}, default="fuse"
        "none" is the discriminant alone and needs no text.
    covariance : {"pooled", "domain"}, default="pooled"
        "domain" replaces S in Lambda by that of the class's domain, (N - C)(S_g + k Sigma)/(N_g - C_g + k) with
        Sigma = S/(N - C), and adds what then differs between domains: -x'Lambda x/2 + d/(N - C) log|Lambda|/2.
    strength : float, default=500
        k: how many samples Sigma counts for in the covariance of a domain.
    views : tuple of int, optional
        Widths of the unit vectors of several encoders, side by side in a row; see `hycal.views`. None is one encoder.

    Notes
    -----
    While every class has one sample there is no spread to estimate; then the variance of a unit vector, tr S/(N-1) = 1,
    is used instead, and the nearest mean decides. A class that was only announced is scored by its text, and by the
    discriminant of the mean of all learned images, which neither favours nor excludes it. Learning costs
    O(N d min(N, d)), a query 2 d C operations. Covariances of domains are ours; `SLDA` says what they cost.

    References
    ----------
    Wang et al., A hard-to-beat baseline for training-free CLIP-based adaptation, ICLR 2024.
    Kubokawa and Srivastava, Estimation of the precision matrix of a singular Wishart distribution and its application
    in high-dimensional data, J. Multivariate Analysis 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hycal import GDA
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(GDA(zero_shot="none").fit(X[:500], y[:500]).score(X[1000:], y[1000:]) > 0.85)
    True
    """

    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "zero_shot": ZERO_SHOT,
        **DOMAIN_CONSTRAINTS,
        "views": VIEWS,
    }
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "strength": STRENGTHS,
        "alpha": (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
    }

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        zero_shot: str = "fuse",
        covariance: str = "pooled",
        strength: float = 500.0,
        views: tuple[int, ...] | None = None,
    ) -> None:
        self.alpha = alpha
        self.zero_shot = zero_shot
        self.covariance = covariance
        self.strength = strength
        self.views = views

    def derive(self, records: Records, previous: Any) -> LinearHead | _WithNames | DomainDiscriminants:
        """Return the discriminant, and the zero-shot weights added where they are wanted."""
        last = previous if isinstance(previous, _WithNames) else None
        stepped = self.followed(records, None if last is None else last.discriminant)
        if stepped is not None:
            names = text_head(records, LOGIT_SCALE, None if last is None else last.names) if self.fuses else None
            return _WithNames(stepped, names, -self.alpha * np.log(len(records.counts)))
        seen = records.counts > 0
        if not seen.any():
            return LinearHead.on_embeddings(text_weights(records))
        rows = records.stacked()
        within = WithinClass.of(rows, records.counts[seen])
        means = np.tile(rows.mean(axis=0, dtype=np.float64), (len(seen), 1))
        means[seen] = within.means
        if self.covariance == "domain":
            covariances = domain_covariances(within, records.counts, records.groups, self.strength)
            return self._by_domain(records, means, records.groups, covariances, within.freedom, len(rows))
        ridge, gain = self.regularisation(records.width, len(rows), len(seen), within.scatter_trace)
        head = replace(within, means=means).discriminant(Identity(records.width), ridge=ridge, gain=gain)
        return self._with_names(head, records)

    def derive_sealed(self, table: SealedRecords) -> LinearHead | DomainDiscriminants:
        """Return the same from the scatters of domains."""
        freedom, classes = sealed_freedom(table), len(table.labels)
        samples = freedom + classes
        if self.covariance == "domain":
            covariances = sealed_covariances(table, self.strength)
            return self._by_domain(table, table.means, table.grouping, covariances, freedom, samples)
        within = sealed_within(table)
        ridge, gain = self.regularisation(table.width, samples, classes, within.scatter_trace)
        return self._with_names(within.discriminant(Identity(table.width), ridge=ridge, gain=gain), table)

    def regularisation(self, width: int, samples: int, classes: int, trace: float) -> tuple[float, float]:
        """Return the ridge tr S/(N - 1), or 1 where there is no spread, and the gain alpha d."""
        spread = trace / max(samples - 1, 1)
        return (spread if spread > NO_SPREAD else 1.0), self.alpha * width

    def _with_names(self, head: LinearHead, records: Records) -> LinearHead:
        weights = head.weights + text_weights(records) if self.fuses else head.weights
        return LinearHead.on_embeddings(weights, head.bias - self.alpha * np.log(len(records.labels)))

    def _by_domain(
        self,
        records: Records,
        means: Doubles,
        groups: npt.NDArray[np.intp],
        covariances: Sequence[Doubles],
        freedom: int,
        samples: int,
    ) -> DomainDiscriminants:
        """Return the discriminants of the domains; an announced class stands at the mean of all samples."""
        width, regularised = records.width, []
        for each in covariances:
            ridge, _ = self.regularisation(width, samples, len(means), freedom * np.trace(each))
            regularised.append(each + ridge / freedom * np.eye(width))
        found = DomainDiscriminants.of(means, groups, regularised, self.alpha * width / freedom)
        return replace(found, head=self._with_names(found.head, records))

    def scores_without_each(
        self, derived: LinearHead | _WithNames | DomainDiscriminants, records: Records, samples: Selection
    ) -> Doubles | None:
        """Return the discriminant without each sample; None if announced classes have the mean of all."""
        if self.covariance == "domain":
            return score_in_folds(self, records, samples)
        if records.unseen:
            return None  # their mean is that of all samples, which changes with each
        within = WithinClass.of(records.stacked(), records.counts)
        X = samples.X.astype(np.float64)
        lost = samples.counts / (samples.counts - 1.0) * np.sum((X - within.means[samples.own]) ** 2, axis=1)
        spreads = (within.scatter_trace - lost) / max(len(within.deviations) - 2, 1)
        P = Precision(within.deviations, np.where(spreads > NO_SPREAD, spreads, 1.0))
        scores = within.leave_one_out(X, samples.own, samples.counts, P)
        scores = self.alpha * (records.width * scores - np.log(len(within.means)))
        return scores + X @ text_weights(records).T if self.fuses else scores
