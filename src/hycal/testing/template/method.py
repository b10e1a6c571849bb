"""NearestMedian: a method for hycal, which finds it through the entry point in pyproject.toml.

Write your own `derive` and `score_rows` in the place of these, with the parameters they need. The rest is optional.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hycal.algebra.cost import Addition
from hycal.algebra.features import LinearHead
from hycal.base import IncrementalClassifier
from hycal.encoders.onnx_graph import GraphBuilder
from hycal.estimator import Interval
from hycal.state.records import Records
from hycal.state.snapshot import Snapshot
from hycal.validation import Doubles, Floats


class NearestMedian(IncrementalClassifier):
    r"""Cosine to the median of a class, pulled towards its mean.

    .. math:: s_c = x^\top m_c / |m_c|, \quad m_c = (1 - \varepsilon) \operatorname{median}_c + \varepsilon \mu_c

    Parameters
    ----------
    pull : float in [0, 1], default=0.1
        Epsilon: 0 is the median, 1 the mean.

    Examples
    --------
    >>> clf = NearestMedian().fit([[1.0, 0.0], [0.0, 1.0]], ["right", "up"])
    >>> clf.predict([[0.9, 0.1]]).tolist()
    ['right']
    """

    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {"pull": [Interval(Real, 0, 1, closed="both")]}
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"pull": (0.0, 0.1, 0.5, 1.0)}

    def __init__(self, *, pull: float = 0.1) -> None:
        self.pull = pull

    def derive(self, records: Records, previous: Any) -> LinearHead:
        """Return the directions of the medians as weights."""
        centres = np.stack([self._centre(record.samples.rows.astype(np.float64)) for record in records.ordered])
        lengths = np.linalg.norm(centres, axis=1, keepdims=True)
        return LinearHead.on_embeddings(centres / np.maximum(lengths, 1e-12))

    def _centre(self, rows: Doubles) -> Doubles:
        centre: Doubles = (1.0 - self.pull) * np.median(rows, axis=0) + self.pull * rows.mean(axis=0)
        return centre

    def score_rows(self, derived: LinearHead, X: Floats, columns: npt.NDArray[np.intp] | None) -> Doubles:
        """Return the cosines."""
        return derived(X, columns)

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count a sort of every coordinate of every class."""
        return addition.samples * addition.width * float(np.log2(max(addition.shots, 2)))

    def onnx_scores(self, graph: GraphBuilder, rows: str, snapshot: Snapshot) -> str:
        """Add one matrix product."""
        return graph.affine(rows, snapshot.value.weights, snapshot.value.bias)
