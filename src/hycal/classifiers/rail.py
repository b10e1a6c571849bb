"""RAIL: ridge regression on expanded features, fused with CLIP's zero-shot classifier."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hycal.algebra.classwise_head import text_head
from hycal.algebra.cost import Addition, kernel_regression
from hycal.algebra.cost import regression_on_features as operations_on_features
from hycal.algebra.features import Kernel, LinearHead, Relu, one_hot
from hycal.algebra.ridge import gram_leave_one_out, held_out_by_ridge, sample_kernel, solve_ridge
from hycal.algebra.ridge_step import SteppedRegression, can_follow, followed, regression_on_features
from hycal.algebra.softmax import LOGIT_SCALE, probabilities
from hycal.classifiers.families import (
    N_COMPONENTS,
    NEEDS_IMAGES,
    RANDOM_STATE,
    ZERO_SHOT,
    ZeroShotFusion,
    feature_bytes,
    fewer_samples,
    text_weights,
)
from hycal.classifiers.sealed_features import SealedOnFeatures
from hycal.estimator import Interval
from hycal.state.records import Records
from hycal.state.sealed import SealedRecords
from hycal.state.selection import Selection
from hycal.validation import Doubles, Floats

_ADAPTER_CONSTRAINTS: Mapping[str, list[Any]] = {
    "ridge": [Interval(Real, 0, None, closed="neither")],
    "fusion_weight": [Interval(Real, 0, 1, closed="both")],
    "zero_shot": ZERO_SHOT,
}
_SHARES = (0.3, 0.5, 0.65, 0.8, 0.9, 0.95)  # of the adapter, that tuning tries


@dataclass(frozen=True, eq=False)
class _Fused:
    """The adapter if any class has images, the zero-shot classifier of all classes, and which of them have images."""

    adapter: LinearHead | SteppedRegression | None
    names: LinearHead | None
    learned: npt.NDArray[np.bool_]

    @property
    def changed(self) -> int:
        """Samples that changed since the regression was solved."""
        return self.adapter.changed if isinstance(self.adapter, SteppedRegression) else 0


class _RAIL(ZeroShotFusion):
    """What both forms share: the fusion."""

    ridge: float
    fusion_weight: float

    @abstractmethod
    def _adapter(self, records: Records) -> LinearHead | SteppedRegression:
        """Return the regression on the images of all learned classes, one column per class of the records."""

    @property
    def rebuilt_because(self) -> str:
        """Nothing: a regression follows small changes."""
        return ""

    def derive(self, records: Records, previous: _Fused | None) -> _Fused:
        """Return the adapter, the zero-shot classifier, and which classes have images."""
        learned = records.counts > 0
        names = text_head(records, LOGIT_SCALE, previous and previous.names) if self.fuses else None
        adapter = followed(previous and previous.adapter, records)
        if adapter is None and learned.any():
            return _Fused(self._adapter(records), names, learned)
        return _Fused(adapter, names, learned)

    def score_rows(self, derived: _Fused, X: Floats, columns: npt.NDArray[np.intp] | None) -> Doubles:
        """Return the fused probabilities, or the adapter alone."""
        if derived.names is None:
            assert derived.adapter is not None  # without names there are no classes without images
            return derived.adapter(X, columns)
        scores = probabilities(derived.names(X))
        known = derived.learned[scores.argmax(axis=1)]
        if derived.adapter is not None and known.any():
            scores[known] = self._fused(scores[known], derived.adapter(X[known]))
        return scores if columns is None else scores[:, columns]

    def _fused(self, names: Doubles, adapter: Doubles) -> Doubles:
        return (1.0 - self.fusion_weight) * names + self.fusion_weight * adapter

    def scores_without_each(self, derived: _Fused, records: Records, samples: Selection) -> Doubles:
        """Return the fusion with the adapter that did not see each sample."""
        return self._with_names(self._held_out_adapter(derived.adapter, records, samples), records, samples)

    def _held_out_adapter(self, adapter: Any, records: Records, samples: Selection) -> Doubles:
        """Return what the regression says of samples that it did not see, in the smaller of its forms."""
        by_kernel = self._adapters_by(records, samples, "ridge", [self.ridge])
        if by_kernel is not None:
            return next(iter(by_kernel))
        head = adapter or self._adapter(records)
        assert isinstance(head.features, Relu)
        y = np.eye(len(records.counts))[samples.own]
        return gram_leave_one_out(head.features, records.stacked(), self.ridge, samples.rows, head(samples.X) - y) + y

    def scores_by_value(
        self, records: Records, samples: Selection, name: str, values: Sequence[Any]
    ) -> Iterable[Doubles] | None:
        """Return the same under each value of a parameter, from one kernel or one adapter where that is possible."""
        if name == "fusion_weight":
            adapter = self._held_out_adapter(None, records, samples)
            settings = [self.with_parameters(fusion_weight=value) for value in values]
            return (setting._with_names(adapter, records, samples) for setting in settings)
        adapters = self._adapters_by(records, samples, name, values)
        return None if adapters is None else (self._with_names(adapter, records, samples) for adapter in adapters)

    def _adapters_by(
        self, records: Records, samples: Selection, name: str, values: Sequence[Any]
    ) -> Iterable[Doubles] | None:
        kernel = self._kernel(records) if name == "ridge" else None
        return None if kernel is None else held_out_by_ridge(kernel, one_hot(records.counts), samples.rows, values)

    def _with_names(self, adapter: Doubles, records: Records, samples: Selection) -> Doubles:
        """Return the held-out scores of the adapter, fused with zero-shot where that is wanted."""
        if not self.fuses:
            return adapter
        names = probabilities(LinearHead.on_embeddings(text_weights(records))(samples.X))
        known = (records.counts > 0)[names.argmax(axis=1)]
        return np.where(known[:, None], self._fused(names, adapter), names)

    @abstractmethod
    def _kernel(self, records: Records) -> Doubles | None:
        """Return the lower triangle of the regression's kernel, in Fortran order; None where features are fewer."""


class PrimalRAIL(SealedOnFeatures, _RAIL):
    r"""Ridge regression on random ReLU features, fused with zero-shot.

    .. math:: a(x) = \phi(x)^\top (\Phi^\top \Phi + \lambda I)^{-1} \Phi^\top Y, \quad \phi(x) = \max(0, V x)

    with V drawn once from U(-1/sqrt(d), 1/sqrt(d)) and Y the one-hot labels. Where zero-shot picks a class that has
    images, its probabilities p are blended with the adapter, (1 - w) p + w a; where it picks a class that was only
    announced, p stands. p is the softmax of 100 x.t over every class of the model, announced ones included, whatever
    the candidates; a is 0 for classes without images.

    Parameters
    ----------
    n_components : int, default=15000
        Number of random features.
    ridge : float, default=0.1
        Lambda.
    fusion_weight : float in [0, 1], default=0.8
        w, the adapter's share.
    zero_shot : {"fuse", "none"}, default="fuse"
        "none" is the adapter alone and needs no text.
    random_state : int, default=0
        Seed of V.

    Notes
    -----
    The published recursion over mini-batches equals the joint regression, which is what is computed, in sample space
    where samples are fewer than features. Learning costs O(N M min(N, M)), a query 2 M (d + C) operations.

    References
    ----------
    Xu et al., Advancing cross-domain discriminability in continual learning of vision-language models, NeurIPS 2024.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hycal import PrimalRAIL
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = PrimalRAIL(n_components=500, zero_shot="none").fit(X[:500], y[:500])
    >>> bool(clf.score(X[1000:], y[1000:]) > 0.85)
    True
    """

    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {
        **_ADAPTER_CONSTRAINTS,
        "n_components": N_COMPONENTS,
        "random_state": RANDOM_STATE,
    }
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "ridge": (1e-3, 1e-2, 1e-1, 1.0),
        "fusion_weight": _SHARES,
    }
    # The paper runs its baselines on "1024-dimensional embeddings"; for RAIL the size of the map is inferred.
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "official": {"n_components": 15000, "ridge": 0.1, "fusion_weight": 0.8},
        "hycal-paper": {"n_components": 1024, "ridge": 0.1, "fusion_weight": 0.8},
        "robust": {"n_components": 15000},
    }

    def __init__(
        self,
        *,
        n_components: int = 15000,
        ridge: float = 0.1,
        fusion_weight: float = 0.8,
        zero_shot: str = "fuse",
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.ridge = ridge
        self.fusion_weight = fusion_weight
        self.zero_shot = zero_shot
        self.random_state = random_state

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count the regression on features of all samples."""
        return operations_on_features(addition)

    def least_bytes(self, records: Records) -> int:
        """Return the bytes of the map and of the regression."""
        return feature_bytes(records, self.n_components)

    @property
    def rebuilt_because(self) -> str:
        """Fewer samples than features."""
        return fewer_samples(self, self.n_components)

    def features_of(self, width: int) -> Relu:
        """Draw V."""
        return Relu.uniform(width, self.n_components, self.random_state)

    def derive_sealed(self, table: SealedRecords) -> _Fused:
        """Return the adapter from moments."""
        names = text_head(table, LOGIT_SCALE, None) if self.fuses else None
        return _Fused(self.sealed_head(table, self.ridge), names, table.counts > 0)

    def _kernel(self, records: Records) -> Doubles | None:
        X = records.stacked()
        return sample_kernel(self.features_of(records.width), X) if len(X) < self.n_components else None

    def _adapter(self, records: Records) -> LinearHead | SteppedRegression:
        return regression_on_features(self.features_of(records.width), records, self.ridge)


class DualRAIL(_RAIL):
    r"""Kernel ridge regression, fused with zero-shot.

    .. math:: a(x) = k(x)^\top (K + \lambda I)^{-1} Y, \quad k(x, x_i) = \exp(-\gamma |x - x_i|^2)

    over all stored images x_i, with Y the one-hot labels. The fusion is that of `PrimalRAIL`.

    Parameters
    ----------
    gamma : float, default=0.1
        Sharpness of the kernel.
    ridge : float, default=1e-3
        Lambda.
    fusion_weight, zero_shot
        As in `PrimalRAIL`.

    Notes
    -----
    Learning costs O(N^3), a query 2 N (d + C) operations.

    References
    ----------
    As of `PrimalRAIL`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hycal import DualRAIL
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(DualRAIL(zero_shot="none").fit(X[:500], y[:500]).score(X[1000:], y[1000:]) > 0.85)
    True
    """

    unsealable: ClassVar[str] = NEEDS_IMAGES
    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {
        **_ADAPTER_CONSTRAINTS,
        "gamma": [Interval(Real, 0, None, closed="neither")],
    }
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "gamma": (0.03, 0.1, 0.3, 1.0),
        "ridge": (1e-4, 1e-3, 1e-2, 1e-1),
        "fusion_weight": _SHARES,
    }
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "official": {"gamma": 0.1, "ridge": 1e-3, "fusion_weight": 0.8},
        "robust": {},
    }

    def __init__(
        self, *, gamma: float = 0.1, ridge: float = 1e-3, fusion_weight: float = 0.8, zero_shot: str = "fuse"
    ) -> None:
        self.gamma = gamma
        self.ridge = ridge
        self.fusion_weight = fusion_weight
        self.zero_shot = zero_shot

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count the kernel of all samples, its Cholesky factor, and the solution for every class."""
        return kernel_regression(addition)

    def _adapters_by(
        self, records: Records, samples: Selection, name: str, values: Sequence[Any]
    ) -> Iterable[Doubles] | None:
        if name != "gamma":
            return super()._adapters_by(records, samples, name, values)
        kernels = (self.with_parameters(gamma=value)._kernel(records) for value in values)
        Y = one_hot(records.counts)
        return (next(held_out_by_ridge(kernel, Y, samples.rows, [self.ridge])) for kernel in kernels)

    def _kernel(self, records: Records) -> Doubles:
        return self._features(records).matrix()

    def _features(self, records: Records) -> Kernel:
        return Kernel(records.stacked().astype(np.float64), self.gamma)

    def _adapter(self, records: Records) -> LinearHead | SteppedRegression:
        kernel, Y = self._features(records), one_hot(records.counts)
        if can_follow(records, kernel.size):
            return SteppedRegression.solved_for(records, kernel, kernel.matrix(), Y, self.ridge)
        weights = solve_ridge(kernel.matrix(), self.ridge, Y).T
        return LinearHead(kernel, weights, np.zeros(len(weights)))
