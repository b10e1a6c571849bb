"""LoRanPAC: regression on very many random ReLU features, with the smallest singular values cut off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigh

from hycal.algebra.cost import Addition
from hycal.algebra.features import ArcCosine, LinearHead, Relu, one_hot
from hycal.algebra.ridge import gram_and_moments, sample_kernel, weights_of
from hycal.classifiers.families import (
    N_COMPONENTS,
    NEEDS_IMAGES,
    RANDOM_STATE,
    FoldedClassifier,
    feature_bytes,
    folds,
)
from hycal.estimator import Interval
from hycal.state.records import Records
from hycal.state.selection import Selection
from hycal.validation import Doubles, Floats

_MOST = 10000  # singular values that are kept, as published
_ROUNDING = 1e-12  # of the largest eigenvalue: smaller ones are rounding


@dataclass(frozen=True, eq=False)
class _Spectrum:
    """Eigenvalues, largest first, and eigenvectors of H'H or of H H', and the targets in that basis."""

    features: Relu | ArcCosine
    rows: Floats  # (N, d)
    values: Doubles  # (n,)
    vectors: Doubles  # (n, n)
    moments: Doubles  # (n, C): U'H'Y or V'Y

    @classmethod
    def of(cls, features: Relu | ArcCosine, rows: Floats, Y: Doubles) -> _Spectrum:
        """Decompose the smaller of both matrices."""
        if isinstance(features, Relu) and features.size <= len(rows):
            matrix, moments = gram_and_moments(features, rows, Y)
        elif isinstance(features, Relu):
            matrix, moments = sample_kernel(features, rows), Y
        else:
            matrix, moments = features.matrix(), Y
        e, V = eigh(matrix, lower=True, overwrite_a=True, check_finite=False)
        values, vectors = e[::-1], V[:, ::-1]
        return cls(features, rows, values, vectors, vectors.T @ moments)

    def head(self, truncation: float) -> LinearHead:
        """Return the regression on what is left after the truncation."""
        kept = max(min(round((1.0 - truncation) * len(self.values)), _MOST), 1)
        kept = min(kept, int(np.count_nonzero(self.values > _ROUNDING * self.values[0])))
        solution = self.vectors[:, :kept] @ (self.moments[:kept] / self.values[:kept, None])
        weights = solution.T
        if isinstance(self.features, Relu) and self.features.size > len(self.rows):
            weights = weights_of(self.features, self.rows, solution)
        return LinearHead(self.features, weights, np.zeros(len(weights)))


class LoRanPAC(FoldedClassifier):
    r"""Least squares on random ReLU features, restricted to their largest singular directions.

    .. math:: s(x) = h(x)^\top U_r \Sigma_r^{-2} U_r^\top H^\top Y, \quad h(x) = \max(0, x^\top W)

    with W drawn once from N(0, 1), the rows of H the features of all samples, Y the one-hot labels, and U_r, Sigma_r
    the r largest singular directions and values of H'.

    Parameters
    ----------
    n_components : int or None, default=2000
        M, the number of random features; the authors draw 100,000. None is the limit of infinitely many: products of
        features are then those of the arc-cosine kernel, so nothing is random, and all N samples are decomposed.
    truncation : float in [0, 1), default=0.25
        Share of the singular values that is cut off, the smallest: of the N samples, or of the M features if these are
        fewer. No more than 10,000 are kept.
    random_state : int, default=0
        Seed of W; not used in the limit.

    Notes
    -----
    Read from the authors' code, which updates the decomposition from batch to batch and truncates each time what
    earlier truncations left, so that its answer depends on the batches. This is the form for all samples at once, which
    is the published one for a single batch and keeps every law. Learning costs an eigendecomposition, 9 min(N, M)^3,
    and in the limit 2 N^2 d before it, else N M min(N, M); a query 2 M (d + C), in the limit 2 N (d + C) operations.
    Leave-one-out has no closed form: up to a tenth of each class is left out at once.

    References
    ----------
    Peng et al., LoRanPAC: Low-rank random features and pre-trained models for bridging theory and practice in continual
    learning, ICLR 2025; named TSVD in its code.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hycal import LoRanPAC
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(LoRanPAC().fit(X[:500], y[:500]).score(X[1000:], y[1000:]) > 0.85)
    True
    """

    unsealable: ClassVar[str] = NEEDS_IMAGES
    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {
        "n_components": [*N_COMPONENTS, None],
        "truncation": [Interval(Real, 0, 1, closed="left")],
        "random_state": RANDOM_STATE,
    }
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"truncation": (0.0, 0.1, 0.25, 0.5, 0.7, 0.8, 0.9)}
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "official": {"n_components": 100000, "truncation": 0.25},
        "robust": {"n_components": None},
    }

    def __init__(self, *, n_components: int | None = 2000, truncation: float = 0.25, random_state: int = 0) -> None:
        self.n_components = n_components
        self.truncation = truncation
        self.random_state = random_state

    rebuilt_because = "a truncated decomposition has no exact update"

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count random features of all samples, their products, the decomposition, and the solution."""
        N, M = addition.samples, addition.features
        small = min(N, M)
        return 2 * N * addition.width * M + N * M * small + 9 * small**3 + 2 * N * M * addition.classes

    def least_bytes(self, records: Records) -> int:
        """Return the bytes of the feature map, and of the features of all samples."""
        size = self.n_components or 0
        return feature_bytes(records, size) + 8 * size * int(records.counts.sum())

    def _spectrum(self, records: Records) -> _Spectrum:
        rows, features = records.stacked(), self._features(records)
        return _Spectrum.of(features, rows, one_hot(records.counts))

    def _features(self, records: Records) -> Relu | ArcCosine:
        if self.n_components is None:
            return ArcCosine(records.stacked().astype(np.float64))
        return Relu.gaussian(records.width, self.n_components, self.random_state)

    def derive(self, records: Records, previous: Any) -> LinearHead:
        """Return the truncated regression."""
        return self._spectrum(records).head(self.truncation)

    def scores_by_value(
        self, records: Records, samples: Selection, name: str, values: Sequence[Any]
    ) -> Iterable[Doubles] | None:
        """Return the same for each truncation, from one decomposition for each fold."""
        if name != "truncation":
            return None
        scores = np.empty((len(values), len(samples.rows), len(records.counts)))
        for positions, fewer in folds(records, samples):
            spectrum = self._spectrum(fewer)
            for each, value in zip(scores, values, strict=True):
                each[positions] = spectrum.head(value)(samples.X[positions])
        return scores
