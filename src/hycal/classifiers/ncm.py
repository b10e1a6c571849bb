"""NCM: the nearest class mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from hycal.algebra.classwise_head import ClasswiseHead
from hycal.algebra.cost import Addition
from hycal.algebra.covariance import class_means, directions
from hycal.algebra.features import LinearHead
from hycal.classifiers.families import LinearClassifier
from hycal.estimator import StrOptions
from hycal.state.records import ClassRecord, Records
from hycal.state.sealed import SealedRecords
from hycal.state.selection import Selection
from hycal.validation import Doubles
from hycal.views.scorer import VIEWS


class NCM(LinearClassifier):
    r"""Nearest class mean, by angle or by distance.

    .. math:: s_c = x^\top \mu_c / |\mu_c| \quad\text{or}\quad s_c = 2 x^\top \mu_c - |\mu_c|^2

    with mu_c the mean of the unit embeddings of class c. Equal lengths of the means make both rank the same; few shots
    make long means, so the distance favours them a little.

    Parameters
    ----------
    metric : {"cosine", "euclidean"}, default="cosine"
        Cosine is SimpleCIL; the euclidean score is the negative squared distance, less a term all classes share.
    views : tuple of int, optional
        Widths of the unit vectors of several encoders, side by side in a row; see `hycal.views`. None is one encoder.

    Notes
    -----
    Learning costs O(N d), a query 2 d C operations.

    References
    ----------
    Zhou et al., Revisiting class-incremental learning with pre-trained models, IJCV 2024 (SimpleCIL).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hycal import NCM
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(NCM().fit(X[:500], y[:500]).score(X[1000:], y[1000:]) > 0.8)
    True
    """

    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {
        "metric": [StrOptions({"cosine", "euclidean"})],
        "views": VIEWS,
    }
    seals: ClassVar[str] = "means"
    direction_only: ClassVar[Mapping[str, Any] | None] = {"metric": "cosine"}
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"metric": ("cosine", "euclidean")}
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {"official": {}, "hycal-paper": {}, "robust": {}}

    rebuilt_because = ""

    def __init__(self, *, metric: str = "cosine", views: tuple[int, ...] | None = None) -> None:
        self.metric = metric
        self.views = views

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count the sums of all means."""
        return addition.samples * addition.width

    def derive(self, records: Records, previous: Any) -> LinearHead:
        """Return the class means as weights."""
        return ClasswiseHead.of(records, self._rows, previous, lambda record: record.samples)

    def _rows(self, classes: Sequence[ClassRecord]) -> tuple[Doubles, Doubles]:
        counts = np.array([record.count for record in classes])
        return self._weights(class_means(np.concatenate([record.samples.rows for record in classes]), counts))

    def _weights(self, means: Doubles) -> tuple[Doubles, Doubles]:
        if self.metric == "cosine":
            return directions(means), np.zeros(len(means))
        return 2.0 * means, -np.sum(means**2, axis=1)

    def derive_sealed(self, table: SealedRecords) -> LinearHead:
        """Return the class means as weights."""
        return LinearHead.on_embeddings(*self._weights(table.means))

    def scores_without_each(self, derived: LinearHead, records: Records, samples: Selection) -> Doubles:
        """Only the mean of a sample's own class changes without it."""
        X, n = samples.X.astype(np.float64), samples.counts[:, None]
        means = class_means(records.stacked(), records.counts)[samples.own]
        weights, bias = self._weights((n * means - X) / (n - 1))
        scores = derived(samples.X)
        scores[samples.each, samples.own] = np.einsum("nd,nd->n", X, weights) + bias
        return scores
