"""Methods on random features, sealed: the mean of the features of each class, and the scatter of all around them.

Both give the Gram matrix H'H = S + sum_c K_c m_c m_c' and the moments H'Y, whose columns are K_c m_c. With M features a
sealed model has 4 M (C + M) bytes at most, whatever the number of images; H'H of all classes is one matrix.

    symbol  shape   meaning (C classes, M features)
    H       (N, M)  features of the samples, which are not kept
    S       (M, M)  scatter of the features within classes
    m_c     (M,)    mean of the features of a class of K_c samples
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hycal.algebra.features import Features, LinearHead
from hycal.algebra.ridge import solve_ridge
from hycal.base import IncrementalClassifier
from hycal.sealing import SealPlan
from hycal.state.records import Records
from hycal.state.sealed import SealedRecords, found_key
from hycal.validation import Doubles, Floats


class SealedOnFeatures(IncrementalClassifier):
    """What a method says about sealing that learns from a Gram matrix of random features."""

    seals: ClassVar[str] = "groups"

    @abstractmethod
    def features_of(self, width: int) -> Features:
        """Draw the features of embeddings of this width."""

    def seal_rows(self, rows: Floats, text: Floats | None) -> npt.NDArray[np.floating]:
        """Return the features of embeddings."""
        kind: Any = type(self)
        return _drawn(kind, tuple(self.get_params(deep=False).items()), rows.shape[1])(rows.astype(np.float64))

    def seal_plan(self, value: Any, records: Records) -> SealPlan:
        """All classes share one scatter, whatever their domains."""
        return SealPlan(value, dict.fromkeys(records.labels, found_key("", 0)))

    def sealed_head(self, table: SealedRecords, ridge: float) -> LinearHead:
        """Return the ridge regression of the one-hot labels on the features, from moments."""
        features, weighted = self.features_of(table.width), table.counts[:, None] * table.means
        gram = np.sum([spread.scatter for spread in table.group_spreads], axis=0) + weighted.T @ table.means
        weights: Doubles = solve_ridge(np.asfortranarray(gram), ridge, weighted.T).T
        return LinearHead(features, weights, np.zeros(len(weights)))


@lru_cache(maxsize=1)
def _drawn(kind: type[SealedOnFeatures], parameters: tuple[tuple[str, Any], ...], width: int) -> Features:
    """Return the features of a method; they are drawn once for all classes."""
    return kind(**dict(parameters)).features_of(width)
