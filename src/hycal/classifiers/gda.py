"""GDA: Gaussian discriminant analysis beside CLIP's zero-shot classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from hycal.algebra.cost import Addition, regression
from hycal.algebra.discriminant import NO_SPREAD, Precision, WithinClass
from hycal.algebra.features import Identity, LinearHead
from hycal.classifiers.families import ZERO_SHOT, LinearClassifier, ZeroShotFusion, text_weights
from hycal.estimator import Interval
from hycal.state.records import Records
from hycal.state.selection import Selection
from hycal.validation import Doubles


class GDA(LinearClassifier, ZeroShotFusion):
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

    Notes
    -----
    While every class has one sample there is no spread to estimate; then the variance of a unit vector, tr S/(N-1) = 1,
    stands in and the nearest mean decides. A class that was only announced is told by its text; for the discriminant it
    has the mean of all images learned, neither nearer nor farther than what is known as a whole. Learning costs
    O(N d min(N, d)), a query 2 d C operations.

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
    }
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"alpha": (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)}

    def __init__(self, *, alpha: float = 1.0, zero_shot: str = "fuse") -> None:
        self.alpha = alpha
        self.zero_shot = zero_shot

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count the discriminant of all samples."""
        return regression(addition.samples, addition.width, addition.classes)

    def derive(self, records: Records, previous: Any) -> LinearHead:
        """Return the discriminant, and the zero-shot weights added where they are wanted."""
        seen = records.counts > 0
        if not seen.any():
            return LinearHead.on_embeddings(text_weights(records))
        rows = records.stacked()
        within = WithinClass.of(rows, records.counts[seen])
        spread = within.scatter_trace / max(len(rows) - 1, 1)
        means = np.tile(rows.mean(axis=0, dtype=np.float64), (len(seen), 1))
        means[seen] = within.means
        head = replace(within, means=means).discriminant(
            Identity(records.width),
            ridge=spread if spread > NO_SPREAD else 1.0,
            gain=self.alpha * records.width,
        )
        bias = head.bias - self.alpha * np.log(len(head.bias))
        weights = head.weights + text_weights(records) if self.fuses else head.weights
        return LinearHead.on_embeddings(weights, bias)

    def scores_without_each(self, derived: LinearHead, records: Records, samples: Selection) -> Doubles | None:
        """Return the discriminant without each sample; None where announced classes stand at the mean of all."""
        if records.unseen:
            return None  # they stand at the mean of all samples, which changes
        within = WithinClass.of(records.stacked(), records.counts)
        X = samples.X.astype(np.float64)
        lost = samples.counts / (samples.counts - 1.0) * np.sum((X - within.means[samples.own]) ** 2, axis=1)
        spreads = (within.scatter_trace - lost) / max(len(within.deviations) - 2, 1)
        P = Precision(within.deviations, np.where(spreads > NO_SPREAD, spreads, 1.0))
        scores = within.leave_one_out(X, samples.own, samples.counts, P)
        scores = self.alpha * (records.width * scores - np.log(len(within.means)))
        return scores + X @ text_weights(records).T if self.fuses else scores
