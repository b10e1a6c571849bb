"""APE: a cache of the training images on the most useful dimensions, beside CLIP's zero-shot classifier."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hycal.algebra.classwise_head import text_head
from hycal.algebra.cost import Addition
from hycal.algebra.covariance import directions
from hycal.algebra.features import LinearHead
from hycal.algebra.softmax import LOGIT_SCALE, log_softmax
from hycal.algebra.votes import Votes, Weights
from hycal.classifiers.families import NEEDS_IMAGES, CacheClassifier, TextClassifier
from hycal.estimator import Interval
from hycal.state.records import Records, texts_of
from hycal.state.selection import Selection
from hycal.validation import Doubles, Floats

_TINY = 1e-6  # added to a probability before its logarithm, as published


@dataclass(frozen=True, eq=False)
class _Keys:
    """Keeps some dimensions of embeddings and scales to unit length."""

    kept: npt.NDArray[np.intp]

    def __call__(self, X: Doubles) -> Doubles:
        return directions(X[:, self.kept])


@dataclass(frozen=True, eq=False)
class _Spread:
    """What the choice of dimensions needs: sums over classes of members, which are the images and the text."""

    sums: Doubles  # (C, d)
    members: npt.NDArray[np.int64]  # (C,)
    variances: Doubles  # (d,), of the texts

    @classmethod
    def of(cls, records: Records, texts: Doubles) -> _Spread:
        sums = np.stack([record.samples.rows.sum(axis=0, dtype=np.float64) for record in records.ordered]) + texts
        return cls(sums, records.counts + 1, texts.var(axis=0, ddof=1) if len(texts) > 1 else np.zeros(texts.shape[1]))

    def similarity(self) -> tuple[Doubles, int]:
        """Return sum over pairs of members of two classes of their product, (d,), and the number of pairs."""
        pairs = int(self.members.sum() ** 2 - (self.members**2).sum())
        return self.sums.sum(axis=0) ** 2 - (self.sums**2).sum(axis=0), pairs

    def similarity_without(self, x: Doubles, own: int) -> tuple[Doubles, int]:
        """Return the same without the member x of class `own`."""
        products, pairs = self.similarity()
        others, members = self.sums.sum(axis=0) - self.sums[own], self.members.sum() - self.members[own]
        return products - 2.0 * x * others, pairs - 2 * int(members)


class APE(CacheClassifier, TextClassifier):
    r"""Every training image votes for its class, by how near it is on the dimensions that tell classes apart.

    .. math::
        s_c = 100 \, x^\top t_c + \alpha \sum_{i: y_i = c} \exp(\gamma D_i) \exp(-\beta (1 - x'^\top x'_i)), \quad
        D_i = \log_2 \frac{1 + \epsilon}{p_i + \epsilon}

    where ' keeps a share of the dimensions and scales to unit length, and p_i is the softmax of t'_c.x'_i at the class
    of image i: an image that its text does not explain has a larger vote. Dimensions are kept by the largest
    -v S + (1 - v) V, with S the mean product of two members of different classes (their images and texts) in that
    dimension, and V the variance of the texts.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the cache.
    beta : float, default=1.0
        Sharpness of the votes.
    gamma : float, default=0.1
        How much more an image counts that its text does not explain.
    share : float in (0, 1], default=0.78125
        Of the dimensions that are kept; the authors keep 800 of 1,024 or 500 of 1,024.
    similarity_weight : float in [0, 1], default=0.7
        v.

    Notes
    -----
    The training-free form, read from the authors' code. They search alpha, beta and gamma on validation data from the
    values that are the defaults here, and have as many images of every class; with other counts every pair of members
    counts the same. Learning costs O(N d C), a query 2 N d operations.

    References
    ----------
    Zhu et al., Not all features matter: Enhancing few-shot CLIP with adaptive prior refinement, ICCV 2023.

    Examples
    --------
    >>> from hycal import APE
    >>> text = {"cat": [1.0, 0.0], "dog": [0.0, 1.0]}
    >>> APE().fit([[0.9, 0.1], [0.1, 0.9]], ["cat", "dog"], text=text).predict([[0.6, 0.4]]).tolist()
    ['cat']
    """

    unsealable: ClassVar[str] = NEEDS_IMAGES
    _parameter_constraints: ClassVar[Mapping[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "beta": [Interval(Real, 0, None, closed="neither")],
        "gamma": [Interval(Real, 0, None, closed="left")],
        "share": [Interval(Real, 0, 1, closed="right")],
        "similarity_weight": [Interval(Real, 0, 1, closed="both")],
    }
    tuning_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "beta": (1.0, 3.0, 5.5, 10.0, 20.0),
        "alpha": (0.1, 0.3, 1.0, 3.0, 10.0),
        "gamma": (0.0, 0.1, 0.3, 1.0),
        "share": (0.5, 0.78125, 1.0),
    }
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "official": {"alpha": 1.0, "beta": 1.0, "gamma": 0.1, "share": 0.78125, "similarity_weight": 0.7},
        "robust": {},
    }
    instead: ClassVar[str] = 'use a cache without text, TipAdapter(zero_shot="none")'

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        beta: float = 1.0,
        gamma: float = 0.1,
        share: float = 0.78125,
        similarity_weight: float = 0.7,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.share = share
        self.similarity_weight = similarity_weight

    @classmethod
    def operations(cls, addition: Addition) -> float:
        """Count the products of all images and texts."""
        return 2 * addition.samples * addition.width * addition.classes

    @property
    def rebuilt_because(self) -> str:
        """The vote of an image depends on the texts of all classes, and the dimensions on all images."""
        return "a new class, or other dimensions, change the votes of all images"

    def derive(self, records: Records, previous: tuple[Votes, LinearHead] | None) -> tuple[Votes, LinearHead]:
        """Return the cache of votes, and the zero-shot classifier."""
        last, last_names = previous or (None, None)
        names, texts = text_head(records, LOGIT_SCALE, last_names), texts_of(records.ordered)
        spread = _Spread.of(records, texts)
        kept = self._kept(spread, *spread.similarity())
        if last is not None and last_names is not None and last_names.weights is names.weights:
            assert isinstance(last.keys, _Keys)
            same = np.array_equal(last.keys.kept, kept)
            votes = last.after(records, self._weights(texts, kept)) if same else None
            if votes is not None:
                return votes, names
        return self._cache(records, texts, kept), names

    def _kept(self, spread: _Spread, products: Doubles, pairs: int) -> npt.NDArray[np.intp]:
        """Return the dimensions of the largest criterion, in order."""
        criterion = -self.similarity_weight * products / max(pairs, 1)
        criterion += (1.0 - self.similarity_weight) * spread.variances
        size = max(round(self.share * len(criterion)), 1)
        return np.sort(np.argsort(-criterion, kind="stable")[:size])

    def _cache(self, records: Records, texts: Doubles, kept: npt.NDArray[np.intp]) -> Votes:
        """Return the votes on the dimensions `kept`, with the weight of each image."""
        # beta (1 - x.f) = beta/2 |x - f|^2 on unit vectors: the votes are a kernel's.
        return Votes.of(records, self._weights(texts, kept), self.beta / 2.0, _Keys(kept))

    def _weights(self, texts: Doubles, kept: npt.NDArray[np.intp]) -> Weights:
        """Return what weighs images: the less its text explains one, the more."""
        keys = _Keys(kept)
        targets = keys(texts)

        def weights(rows: Floats, own: npt.NDArray[np.intp]) -> Doubles:
            explained = log_softmax(keys(rows.astype(np.float64)) @ targets.T)[np.arange(len(rows)), own]
            divergence = np.log2((1.0 + _TINY) / (np.exp(explained) + _TINY))
            return self.alpha * np.exp(self.gamma * divergence)

        return weights

    def scores_without_each(self, derived: tuple[Votes, LinearHead], records: Records, samples: Selection) -> Doubles:
        """Take away each sample's own vote; samples without which the same dimensions are kept go together."""
        texts = texts_of(records.ordered)
        spread, together = _Spread.of(records, texts), defaultdict(list)
        for row, (x, own) in enumerate(zip(samples.X.astype(np.float64), samples.own, strict=True)):
            together[self._kept(spread, *spread.similarity_without(x, own)).tobytes()].append(row)
        scores = np.empty((len(samples.rows), len(texts)))
        for kept, rows in together.items():
            dimensions, some = np.frombuffer(kept, np.intp), samples.at(np.array(rows))
            cache = self._cache(records, texts, dimensions)
            scores[rows] = self.score_rows((cache, derived[1]), some.X, None)
            keys = directions(some.X[:, dimensions].astype(np.float64))
            votes = np.exp(self.beta * (np.einsum("nd,nd->n", keys, keys) - 1.0))
            scores[rows, some.own] -= votes * cache.weights[some.rows]
        return scores
