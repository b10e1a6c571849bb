"""SLDA: linear discriminant analysis of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import Interval

from hycal.algebra.discriminant import Precision, WithinClass
from hycal.algebra.features import Identity, LinearHead
from hycal.base import IncrementalClassifier
from hycal.state.records import Records
from hycal.state.selection import Selection
from hycal.validation import Doubles, Floats


class SLDA(IncrementalClassifier):
    r"""Class means under one shared covariance, shrunk towards the identity.

    .. math::
        s_c = x^\top \Lambda \mu_c - \tfrac12 \mu_c^\top \Lambda \mu_c, \quad
        \Lambda = ((1 - \varepsilon) \Sigma + \varepsilon I)^{-1}, \quad \Sigma = S / (N - C)

    with S the scatter of the samples around the mean of their class.

    Parameters
    ----------
    shrinkage : float in (0, 1), default=1e-4
        Epsilon.

    Notes
    -----
    This is the batch-exact form: the published stream centres a sample on the mean of the moment and adds the first
    sample of a class uncentred, so its covariance depends on the order of the samples. This one does not. While every
    class has one sample, S is 0 and the nearest mean decides. Learning costs O(N d min(N, d)), a query 2 d C.

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

    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {"shrinkage": [Interval(Real, 0, 1, closed="neither")]}

    def __init__(self, *, shrinkage: float = 1e-4) -> None:
        self.shrinkage = shrinkage

    def _derive(self, records: Records, previous: Any) -> LinearHead:
        within = WithinClass.of(records.stacked(), records.counts)
        scale = (1.0 - self.shrinkage) / within.freedom
        return within.discriminant(Identity(records.width), ridge=self.shrinkage / scale, gain=1.0 / scale)

    def _leave_one_out(self, derived: LinearHead, records: Records, samples: Selection) -> Doubles:
        within = WithinClass.of(records.stacked(), records.counts)
        scale = (1.0 - self.shrinkage) / max(within.freedom - 1, 1)
        P = Precision(within.deviations, self.shrinkage / scale)
        return within.leave_one_out(samples.X.astype(np.float64), samples.own, samples.counts, P) / scale

    def _score(self, derived: LinearHead, X: Floats, columns: npt.NDArray[np.intp] | None) -> Doubles:
        return derived(X, columns)
