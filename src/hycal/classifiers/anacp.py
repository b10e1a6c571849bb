"""AnaCP: an analytic projection that moves class means apart, and a regression on top of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from hycal.algebra.cost import Addition, regression
from hycal.algebra.covariance import directions
from hycal.algebra.discriminant import WithinClass
from hycal.algebra.features import Gelu, LinearHead, one_hot
from hycal.algebra.ridge import ridge_weights
from hycal.classifiers.families import (
    ENSEMBLE,
    N_COMPONENTS,
    RANDOM_STATE,
    FoldedClassifier,
    feature_bytes,
)
from hycal.estimator import Interval
from hycal.state.records import Records
from hycal.validation import Doubles

_VARIANCE = 1e-4  # added to every variance, as published
_SMALLEST = 1e-8  # likewise, to every eigenvalue before its root
_ROUNDING = 1e-9  # of the largest singular value: means do not differ in that direction


@dataclass(frozen=True, eq=False)
class _Projected:
    """Random features of the mean of several projections, each scaled to unit length."""

    projections: tuple[LinearHead, ...]
    features: Gelu

    @property
    def size(self) -> int:
        """M."""
        return self.features.size

    def project(self, X: Doubles) -> Doubles:
        """Return the mean of the projections, (n, d)."""
        total = np.zeros_like(X)
        for head in self.projections:
            total += directions(head.features(X) @ head.weights.T)
        return total / len(self.projections)

    def __call__(self, X: Doubles) -> Doubles:
        """Return the features of the rows of X."""
        return self.features(self.project(X))


class AnaCP(FoldedClassifier):
    r"""Ridge regression on random features of an embedding in which class means stand farther apart.

    .. math::
        s(x) = \theta^\top g(W z(x)), \quad
        z(x) = \operatorname{mean}_h \frac{\theta_h^\top g(W_h x)}{|\theta_h^\top g(W_h x)|}, \quad
        g(u) = u \, \Phi(u)

    Each theta_h is the ridge regression of a target on the features of a sample, the target of a sample being that of
    its class. The targets are the class means, whitened with A = (S/N + 10^-4 I)^{-1/2} around their centre, with 1
    added to every singular value, multiplied by A again, moved back to the centre and scaled to unit length. theta is
    the ridge regression of the one-hot labels on the features of Gaussian samples around each class mean, with that
    covariance.

    Parameters
    ----------
    n_components : int, default=2000
        M, the number of random features, of each W_h and of W; the authors draw 5,000. Entries are from N(0, 1).
    heads : int, default=3
        Number of projections.
    ridge : float, default=100
        Of every regression.
    replay : int, default=20
        Gaussian samples of each class; the authors draw 100.
    random_state : int, default=0
        Seed of W_h, W and the Gaussian samples.

    Notes
    -----
    Read from the authors' code. This is the form for all samples at once, equal to theirs for one call; theirs adds the
    10^-4 at the first call only and weights later calls otherwise. Two more differences: a direction in which the class
    means do not differ is left as it is (published: moved by 1 along a vector that the decomposition picks), and all
    classes have the same Gaussian deviations, so that labels and calls make no difference. The authors also adapt the
    encoder in the first session; here it is frozen.

    Learning costs O(H N M min(N, M) + R C M min(R C, M)) for H heads and R Gaussian samples of each of C classes, a
    query 4 H M d + 2 M (d + C) operations. Leave-one-out has no closed form: up to a tenth of each class is left out at
    once.

    References
    ----------
    Momeni et al., AnaCP: Toward upper-bound continual learning via analytic contrastive projection, NeurIPS 2025.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hycal import AnaCP
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = AnaCP(n_components=300, ridge=1.0).fit(X[:500], y[:500])
    >>> bool(clf.score(X[1000:], y[1000:]) > 0.85)
    True
    """

    unsealable: ClassVar[str] = "it has a Gram matrix for each projection, and draws samples around every class mean"
    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {
        "n_components": N_COMPONENTS,
        "heads": ENSEMBLE,
        "ridge": [Interval(Real, 0, None, closed="neither")],
        "replay": [Interval(Integral, 1, 10_000, closed="both")],
        "random_state": RANDOM_STATE,
    }
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"ridge": (1.0, 10.0, 100.0, 1000.0)}
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "official": {"n_components": 5000, "heads": 3, "ridge": 100.0, "replay": 100},
        "robust": {"n_components": 2000, "heads": 3, "replay": 20},
    }

    def __init__(
        self,
        *,
        n_components: int = 2000,
        heads: int = 3,
        ridge: float = 100.0,
        replay: int = 20,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.heads = heads
        self.ridge = ridge
        self.replay = replay
        self.random_state = random_state

    rebuilt_because = "every image changes the targets of all classes and the samples that are drawn"

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count three projections of all samples, and the regression on twenty Gaussian samples of each class."""
        d, M, drawn = addition.width, addition.features, 20 * addition.classes
        projections = 3 * (2 * addition.samples * d * M + regression(addition.samples, M, d))
        return projections + drawn * M * (3 * 4 * d + 2 * d) + regression(drawn, M, addition.classes)

    def least_bytes(self, records: Records) -> int:
        """Return the bytes of the feature maps and of their heads."""
        return feature_bytes(records, self.n_components, draws=self.heads + 1)

    def derive(self, records: Records, previous: Any) -> LinearHead:
        """Return the regression on the projected embedding."""
        rows, counts, width = records.stacked(), records.counts, records.width
        within = WithinClass.of(rows, counts)
        e, V = np.linalg.eigh(within.deviations.T @ within.deviations / len(rows))
        e = np.maximum(e, 0.0) + _VARIANCE
        targets = np.repeat(spread_means(within.means, (V / np.sqrt(e + _SMALLEST)) @ V.T), counts, axis=0)
        *seeds, last, noise = map(int, np.random.SeedSequence(self.random_state).generate_state(self.heads + 2))
        maps = [Gelu.gaussian(width, self.n_components, seed) for seed in seeds]
        projected = _Projected(
            tuple(LinearHead(g, ridge_weights(g, rows, targets, self.ridge), np.zeros(width)) for g in maps),
            Gelu.gaussian(width, self.n_components, last),
        )
        deviations = np.random.default_rng(noise).standard_normal((self.replay, width)) @ ((V * np.sqrt(e)) @ V.T)
        drawn = np.concatenate([projected.project(mean + deviations) for mean in within.means])
        labels = one_hot(np.full(len(counts), self.replay))
        weights = ridge_weights(projected.features, drawn, labels, self.ridge)
        return LinearHead(projected, weights, np.zeros(len(weights)))


def spread_means(means: Doubles, whitening: Doubles) -> Doubles:
    """Return the targets of the projections: the means, farther apart in the whitened space."""
    centre = means.mean(axis=0)
    U, s, Vt = np.linalg.svd((means - centre) @ whitening, full_matrices=False)
    apart = (U * np.where(s > _ROUNDING * max(s[0], 1.0), s + 1.0, s)) @ Vt
    return directions(apart @ whitening + centre)
