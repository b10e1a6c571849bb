"""The best classes of a very large HyCal model without a look at every class.

An approximate index finds the classes whose mean image is nearest to a query, and only those are scored, by the same
Gaussians as always. What needs every class is the z-score: the mean and the spread of each measure over all classes.
With the query v extended to x = [v, 1] and a fusion of fixed length, the cosine of a class is x . a_c; so over C
classes

    mean = x . (sum of a_c)/C,        mean square = x' (sum of a_c a_c')/C x,

one vector and one matrix whatever C is: exact. The distance is a quadratic form of x, so its mean square is of the
fourth degree and has no such form; nor has anything that is divided by |v + t_c| (fusion "sum"). Those moments are
estimated on a fixed sample of the classes. `python -m benchmarks.scale` prints how far that is from the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.bank import GaussianBank
from hycal.classifiers.hycal import HyCal
from hycal.errors import HyCalError
from hycal.records import ClassRecord
from hycal.scoring import blend_log_odds
from hycal.statistics import directions
from hycal.validation import Doubles, Floats, check_queries

_SMALLEST_SPREAD = 1e-6
_ROWS_AT_ONCE = 8192
_QUERIES_AT_ONCE = 256


class Shortlist:
    """The present knowledge of a HyCal model, prepared to answer from the classes nearest to a query.

    Parameters
    ----------
    model : HyCal
        Learned. When it learns more, make a new shortlist.
    nearest : int, default=128
        Classes that are scored for each query.
    sample : int, default=2048
        Classes on which moments without a closed form are estimated; all of them where there are no more.

    Notes
    -----
    Building costs one insertion into an HNSW graph for each class, and 2 C d^2 operations for the moments where they
    are exact; a query costs O(log C) distances, and (nearest + sample) classes of exact scoring.

    Examples
    --------
    >>> from hycal import HyCal
    >>> from hycal.streams import Stream, learn
    >>> stream = Stream.synthetic(0, shots=[[3] * 50], width=16)
    >>> model = learn(HyCal(), stream.steps)
    >>> bool((Shortlist(model, nearest=10).predict(stream.queries) == model.predict(stream.queries)).all())
    True
    """

    def __init__(self, model: HyCal, *, nearest: int = 128, sample: int = 2048) -> None:
        current = model._current()
        self._model, self._records = model, current.records
        self._bank: GaussianBank = current.value.bank
        self._records.check_seen("A shortlist")
        classes = len(self._records.labels)
        self.nearest = min(nearest, classes)
        self._weights = model.weights(self._records.counts)
        self._sample = self._bank.subset(np.unique(np.linspace(0, classes - 1, min(sample, classes)).astype(np.intp)))
        self._cosine_moments = _row_moments(self._bank) if self._bank.shape.fusion.fixed_length else None
        self._index = _index(_mean_images(self._records.ordered))

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the best label for each query."""
        columns, _ = self.best(X, 1)
        return self._records.classes[columns[:, 0]]

    def best(self, X: npt.ArrayLike, most: int = 5) -> tuple[npt.NDArray[np.intp], Floats]:
        """Return the best classes of each query, as positions in `classes_`, and their scores; best first."""
        if self._model._table is not self._records:
            raise HyCalError("The model has changed since the shortlist was made of it. Make a new Shortlist.")
        queries = check_queries(X, width=self._records.width, owner=type(self._model).__name__)
        most = min(most, self.nearest)
        columns = np.empty((len(queries), most), np.intp)
        scores = np.empty((len(queries), most), np.float32)
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            rows = slice(start, start + _QUERIES_AT_ONCE)
            columns[rows], scores[rows] = self._best(queries[rows], most)
        return columns, scores

    def _best(self, queries: Floats, most: int) -> tuple[npt.NDArray[np.intp], Floats]:
        (cosine_mean, cosine_spread), (closeness_mean, closeness_spread) = self.moments(queries)
        found = self._index.search(queries, self.nearest).keys.reshape(len(queries), -1).astype(np.intp)
        columns, scores = np.empty((len(queries), most), np.intp), np.empty((len(queries), most), np.float32)
        for n, candidates in enumerate(found):
            part = self._bank.subset(candidates)
            cosines, closeness = part.evaluate(queries[n : n + 1])
            z_cosine = ((cosines - cosine_mean[n]) / cosine_spread[n]).astype(np.float32)
            z_distance = ((closeness - closeness_mean[n]) / closeness_spread[n]).astype(np.float32)
            members = candidates[part.order]
            blended = blend_log_odds(z_cosine, z_distance, self._weights[members])[:, 0]
            best = np.lexsort((members, -blended))[:most]
            columns[n], scores[n] = members[best], blended[best]
        return columns, scores

    def moments(self, queries: Floats) -> tuple[tuple[Doubles, Doubles], tuple[Doubles, Doubles]]:
        """Return mean and standard deviation over all classes: of the cosine, and of minus the scaled distance."""
        cosines, closeness = self._sample.evaluate(queries)
        estimated = _moments(closeness)
        if self._cosine_moments is None:
            return _moments(cosines), estimated
        mean_row, gram = self._cosine_moments
        x = np.column_stack([queries.astype(np.float64), np.ones(len(queries))]) / self._bank.shape.fusion.fixed_length
        mean = x @ mean_row
        variance = np.einsum("nd,de,ne->n", x, gram, x, optimize=True)
        classes = len(self._records.labels)
        spread = np.sqrt(np.maximum(variance, 0.0) * classes / max(classes - 1, 1))
        return (mean, np.maximum(spread, _SMALLEST_SPREAD)), estimated


def _moments(scores: Floats) -> tuple[Doubles, Doubles]:
    mean = scores.mean(axis=0, dtype=np.float64)
    deviations = scores - mean
    spread = np.sqrt(np.einsum("cn,cn->n", deviations, deviations) / max(len(scores) - 1, 1))
    return mean, np.maximum(spread, _SMALLEST_SPREAD)


def _row_moments(bank: GaussianBank) -> tuple[Doubles, Doubles]:
    """Return mean and covariance of the rows that a query meets for its cosines; centred first, so nothing cancels."""
    mean = bank.means.mean(axis=0, dtype=np.float64)
    covariance = np.zeros((len(mean), len(mean)))
    for start in range(0, len(bank.means), _ROWS_AT_ONCE):
        centred = bank.means[start : start + _ROWS_AT_ONCE] - mean
        covariance += centred.T @ centred
    return mean, covariance / len(bank.means)


def _mean_images(members: Sequence[ClassRecord]) -> Floats:
    return directions(np.stack([member.statistics.mean for member in members])).astype(np.float32)


def _index(vectors: Floats) -> Any:
    try:
        from usearch.index import Index
    except ImportError as error:
        raise HyCalError(
            f"A shortlist needs the package usearch, which cannot be imported ({error}). "
            'Install it: pip install "hycal[shortlist]".'
        ) from None
    index = Index(ndim=vectors.shape[1], metric="ip", dtype="f16")
    index.add(np.arange(len(vectors), dtype=np.uint64), vectors, threads=1)  # more would make a graph of chance
    return index
