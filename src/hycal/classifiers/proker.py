"""ProKeR: kernel ridge regression around CLIP's zero-shot classifier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from hycal.algebra.classwise_head import text_head
from hycal.algebra.cost import Addition, kernel_regression
from hycal.algebra.features import Kernel, LinearHead, one_hot
from hycal.algebra.ridge import held_out_by_ridge, solve_ridge
from hycal.algebra.ridge_step import SteppedRegression, can_follow, followed
from hycal.algebra.softmax import LOGIT_SCALE
from hycal.classifiers.families import NEEDS_IMAGES, ZERO_SHOT, CacheClassifier, ZeroShotFusion, text_weights
from hycal.estimator import Interval
from hycal.state.records import Records
from hycal.state.selection import Selection
from hycal.validation import Doubles


class ProKeR(CacheClassifier, ZeroShotFusion):
    r"""Kernel ridge regression of what zero-shot gets wrong, added to zero-shot.

    .. math::
        s(x) = f(x) + w \, k(x)^\top (K + \lambda I)^{-1} (Y - F), \quad
        f_c(x) = x^\top t_c, \quad k(x, x_i) = \exp(-\beta (1 - x^\top x_i))

    over all stored images x_i, with Y the one-hot labels and F the rows f(x_i). With w = 1 this minimises
    sum |s(x_i) - y_i|^2 + lambda |s - f|^2, the norm being that of the kernel's space.

    Parameters
    ----------
    beta : float, default=1.7
        Sharpness of the kernel.
    ridge : float, default=0.1
        Lambda.
    weight : float or None, default=None
        w. None is lambda, as in the authors' code, which solves with K/lambda + I and leaves the factor 1/lambda out.
    zero_shot : {"fuse", "none"}, default="fuse"
        "none" sets f = 0: kernel ridge regression alone, which needs no text.

    Notes
    -----
    Read from a copy of the authors' code. Their beta and lambda are searched on validation data; the defaults are those
    that they found for 16 shots of ImageNet. A class that was only announced has the target 0 everywhere. Learning
    costs O(N^3), a query 2 N (d + C) operations.

    References
    ----------
    Bendou et al., ProKeR: A kernel perspective on few-shot adaptation of large vision-language models, CVPR 2025.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hycal import ProKeR
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(ProKeR(zero_shot="none").fit(X[:500], y[:500]).score(X[1000:], y[1000:]) > 0.85)
    True
    """

    unsealable: ClassVar[str] = NEEDS_IMAGES
    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {
        "beta": [Interval(Real, 0, None, closed="neither")],
        "ridge": [Interval(Real, 0, None, closed="neither")],
        "weight": [Interval(Real, 0, None, closed="neither"), None],
        "zero_shot": ZERO_SHOT,
    }
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "beta": (0.5, 1.0, 1.7, 3.0, 6.0),
        "ridge": (1e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0),
        "weight": (None, 0.03, 0.1, 0.3, 1.0),
    }
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "official": {"beta": 1.7, "ridge": 0.1, "weight": None},
        "robust": {},
    }

    def __init__(
        self, *, beta: float = 1.7, ridge: float = 0.1, weight: float | None = None, zero_shot: str = "fuse"
    ) -> None:
        self.beta = beta
        self.ridge = ridge
        self.weight = weight
        self.zero_shot = zero_shot

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count the kernel of all samples, its Cholesky factor, and the solution for every class."""
        return kernel_regression(addition)

    @property
    def _gain(self) -> float:
        return self.ridge if self.weight is None else self.weight

    def derive(
        self, records: Records, previous: tuple[Any, LinearHead | None] | None
    ) -> tuple[LinearHead | SteppedRegression, LinearHead | None]:
        """Return the regression of the residuals, and the zero-shot classifier where it is wanted."""
        last, last_names = previous or (None, None)
        names = text_head(records, 1.0, last_names) if self.fuses else None
        regression = followed(last, records, names)
        if regression is None and can_follow(records, int(records.counts.sum())):
            kernel, Y = self._kernel(records), self._residuals(records, names)
            regression = SteppedRegression.solved_for(
                records, kernel, kernel.matrix(), Y, self.ridge, gain=self._gain, names=names
            )
        return (self._small(records, names) if regression is None else regression), names

    def _small(self, records: Records, names: LinearHead | None) -> LinearHead:
        """Return the regression of few samples."""
        kernel, classes = self._kernel(records), len(records.counts)
        weights = np.zeros((classes, kernel.size))
        if kernel.size:
            weights = self._gain * solve_ridge(kernel.matrix(), self.ridge, self._residuals(records, names)).T
        return LinearHead(kernel, weights, np.zeros(classes))

    @property
    def rebuilt_because(self) -> str:
        """Nothing."""
        return ""

    def _kernel(self, records: Records) -> Kernel:
        # beta (1 - x.f) = beta/2 |x - f|^2 on unit vectors.
        return Kernel(records.stacked().astype(np.float64), self.beta / 2.0)

    def _residuals(self, records: Records, names: LinearHead | None) -> Doubles:
        targets = one_hot(records.counts)
        return targets if names is None else targets - names(records.stacked())

    def scores_without_each(
        self, derived: tuple[Any, LinearHead | None], records: Records, samples: Selection
    ) -> Doubles:
        """Return zero-shot and the regression that did not see each sample."""
        return next(self._held_out(records, samples, [self]))

    def scores_by_value(
        self, records: Records, samples: Selection, name: str, values: Sequence[Any]
    ) -> Iterable[Doubles]:
        """Return the same under each value of a parameter, from one kernel unless the kernel changes."""
        settings = [self.with_parameters(**{name: value}) for value in values]
        if name == "beta":
            return (next(setting._held_out(records, samples, [setting])) for setting in settings)
        return self._held_out(records, samples, settings)

    def _held_out(self, records: Records, samples: Selection, settings: Sequence[ProKeR]) -> Iterator[Doubles]:
        """Yield the held-out scores under settings that share this kernel."""
        names = LinearHead.on_embeddings(text_weights(records) / LOGIT_SCALE) if self.fuses else None
        ridges = [setting.ridge for setting in settings]
        kernel, residuals = self._kernel(records).matrix(), self._residuals(records, names)
        for setting, held_out in zip(settings, held_out_by_ridge(kernel, residuals, samples.rows, ridges), strict=True):
            yield setting._gain * held_out + (0.0 if names is None else names(samples.X))
