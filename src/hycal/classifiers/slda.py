"""SLDA: linear discriminant analysis of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from hycal.algebra.discriminant import Precision, WithinClass, sealed_freedom, sealed_within
from hycal.algebra.discriminant_step import SteppedDiscriminant
from hycal.algebra.domain_discriminant import DomainDiscriminants, domain_covariances, sealed_covariances
from hycal.algebra.features import Identity, LinearHead
from hycal.classifiers.families import DOMAIN_CONSTRAINTS, STRENGTHS, Discriminant, score_in_folds
from hycal.estimator import Interval
from hycal.state.records import Records
from hycal.state.sealed import SealedRecords
from hycal.state.selection import Selection
from hycal.validation import Doubles
from hycal.views.scorer import VIEWS


class SLDA(Discriminant):
    r"""Class means under one shared covariance, shrunk towards the identity.

    .. math::
        s_c = x^\top \Lambda \mu_c - \tfrac12 \mu_c^\top \Lambda \mu_c, \quad
        \Lambda = ((1 - \varepsilon) \Sigma + \varepsilon I)^{-1}, \quad \Sigma = S / (N - C)

    with S the scatter of the samples around the mean of their class.

    Parameters
    ----------
    shrinkage : float in (0, 1), default=1e-4
        Epsilon.
    covariance : {"pooled", "domain"}, default="pooled"
        "domain" gives every domain a Sigma of its own, (S_g + k Sigma)/(N_g - C_g + k), and adds to the score what then
        differs between domains: -x'Lambda x/2 + log|Lambda|/2.
    strength : float, default=500
        k: how many samples Sigma counts for in the covariance of a domain.
    views : tuple of int, optional
        Widths of the unit vectors of several encoders, side by side in a row; see `hycal.views`. None is one encoder.

    Notes
    -----
    This is the batch-exact form: the published stream centres a sample on the mean of the moment and adds the first
    sample of a class uncentred, so its covariance depends on the order of the samples. This one does not. While every
    class has one sample, S is 0 and the nearest mean decides. Learning costs O(N d min(N, d)), a query 2 d C.

    Covariances of domains are ours, as a control for methods that know the domains. Each costs d^3 and, in a query,
    2 d^2 operations. Leave-one-out has no closed form then: up to a tenth of each class is left out at once.

    References
    ----------
    Hayes and Kanan, Lifelong machine learning with deep streaming linear discriminant analysis, CVPRW 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hycal import SLDA
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(SLDA().fit(X[:500], y[:500]).score(X[1000:], y[1000:]) > 0.85)
    True
    """

    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {
        "shrinkage": [Interval(Real, 0, 1, closed="neither")],
        **DOMAIN_CONSTRAINTS,
        "views": VIEWS,
    }
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "shrinkage": tuple(10.0**k for k in np.arange(-5, -0.9, 0.5)),
        "strength": STRENGTHS,
    }
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {"official": {"shrinkage": 1e-4}, "robust": {}}

    def __init__(
        self,
        *,
        shrinkage: float = 1e-4,
        covariance: str = "pooled",
        strength: float = 500.0,
        views: tuple[int, ...] | None = None,
    ) -> None:
        self.shrinkage = shrinkage
        self.covariance = covariance
        self.strength = strength
        self.views = views

    def derive(self, records: Records, previous: Any) -> LinearHead | SteppedDiscriminant | DomainDiscriminants:
        """Return the discriminant under the shrunk covariance."""
        stepped = self.followed(records, previous)
        if stepped is not None:
            return stepped
        within = WithinClass.of(records.stacked(), records.counts)
        if self.covariance == "domain":
            groups, identity = records.groups, np.eye(records.width)
            covariances = domain_covariances(within, records.counts, groups, self.strength)
            shrunk = [(1.0 - self.shrinkage) * each + self.shrinkage * identity for each in covariances]
            return DomainDiscriminants.of(within.means, groups, shrunk, weight=1.0)
        ridge, gain = self.regularisation(records.width, len(within.deviations), len(within.means), 0.0)
        return within.discriminant(Identity(records.width), ridge=ridge, gain=gain)

    def regularisation(self, width: int, samples: int, classes: int, trace: float) -> tuple[float, float]:
        """Return the ridge epsilon f/(1 - epsilon) and the gain f/(1 - epsilon) with f = N - C, at least 1."""
        scale = (1.0 - self.shrinkage) / max(samples - classes, 1)
        return self.shrinkage / scale, 1.0 / scale

    def derive_sealed(self, table: SealedRecords) -> LinearHead | DomainDiscriminants:
        """Return the discriminant from the scatters of domains."""
        if self.covariance == "domain":
            shrink = self.shrinkage * np.eye(table.width)
            shrunk = [(1.0 - self.shrinkage) * each + shrink for each in sealed_covariances(table, self.strength)]
            return DomainDiscriminants.of(table.means, table.grouping, shrunk, weight=1.0)
        scale = (1.0 - self.shrinkage) / sealed_freedom(table)
        within = sealed_within(table)
        return within.discriminant(Identity(table.width), ridge=self.shrinkage / scale, gain=1.0 / scale)

    def scores_without_each(
        self, derived: LinearHead | SteppedDiscriminant | DomainDiscriminants, records: Records, samples: Selection
    ) -> Doubles:
        """Return the discriminant without each sample, by a rank-one change of the precision."""
        if self.covariance == "domain":
            return score_in_folds(self, records, samples)
        within = WithinClass.of(records.stacked(), records.counts)
        scale = (1.0 - self.shrinkage) / max(within.freedom - 1, 1)
        P = Precision(within.deviations, self.shrinkage / scale)
        return within.leave_one_out(samples.X.astype(np.float64), samples.own, samples.counts, P) / scale
