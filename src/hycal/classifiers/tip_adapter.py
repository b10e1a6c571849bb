"""TipAdapter: a cache of the training images beside CLIP's zero-shot classifier."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hycal.algebra.classwise_head import text_head
from hycal.algebra.cost import Addition
from hycal.algebra.features import LinearHead
from hycal.algebra.softmax import LOGIT_SCALE
from hycal.algebra.votes import Votes
from hycal.classifiers.families import NEEDS_IMAGES, ZERO_SHOT, CacheClassifier, ZeroShotFusion
from hycal.estimator import Interval
from hycal.state.records import Records
from hycal.state.selection import Selection
from hycal.validation import Doubles, Floats


class TipAdapter(CacheClassifier, ZeroShotFusion):
    r"""Every training image votes for its class, by how near it is.

    .. math:: s_c = 100 \, x^\top t_c + \alpha \sum_{i: y_i = c} \exp(-\beta (1 - x^\top x_i))

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the cache.
    beta : float, default=5.5
        Sharpness of the votes.
    zero_shot : {"fuse", "none"}, default="fuse"
        "none" is the cache alone and needs no text.

    Notes
    -----
    The training-free form. The votes are summed, as published, so a class with more images has more votes; alpha and
    beta are the paper's, since there is no validation set to search them on. A query costs 2 N d operations.

    References
    ----------
    Zhang et al., Tip-Adapter: Training-free adaption of CLIP for few-shot classification, ECCV 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hycal import TipAdapter
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(TipAdapter(beta=50, zero_shot="none").fit(X[:500], y[:500]).score(X[1000:], y[1000:]) > 0.85)
    True
    """

    unsealable: ClassVar[str] = NEEDS_IMAGES
    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "beta": [Interval(Real, 0, None, closed="neither")],
        "zero_shot": ZERO_SHOT,
    }
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "beta": (1.0, 5.5, 20.0, 50.0),
        "alpha": (0.1, 0.3, 1.0, 3.0, 10.0),
    }
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {"official": {"alpha": 1.0, "beta": 5.5}, "robust": {}}

    def __init__(self, *, alpha: float = 1.0, beta: float = 5.5, zero_shot: str = "fuse") -> None:
        self.alpha = alpha
        self.beta = beta
        self.zero_shot = zero_shot

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count nothing: learning stores the images."""
        return 0.0

    rebuilt_because = ""

    def derive(
        self, records: Records, previous: tuple[Votes, LinearHead | None] | None
    ) -> tuple[Votes, LinearHead | None]:
        """Return the cache of votes, and the zero-shot classifier where it is wanted."""
        last, names = previous or (None, None)
        votes = None if last is None else last.after(records, self._weights)
        if votes is None:
            # beta (1 - x.f) = beta/2 |x - f|^2 on unit vectors: the votes are a kernel's.
            votes = Votes.of(records, self._weights, self.beta / 2.0, keys=lambda rows: rows)
        return votes, text_head(records, LOGIT_SCALE, names) if self.fuses else None

    def _weights(self, rows: Floats, own: npt.NDArray[np.intp]) -> Doubles:
        return np.full(len(rows), self.alpha)

    def scores_without_each(
        self, derived: tuple[Votes, LinearHead | None], records: Records, samples: Selection
    ) -> Doubles:
        """Take away each sample's own vote."""
        X = samples.X.astype(np.float64)
        scores = self.score_rows(derived, samples.X, None)
        scores[samples.each, samples.own] -= self.alpha * np.exp(self.beta * (np.einsum("nd,nd->n", X, X) - 1.0))
        return scores
