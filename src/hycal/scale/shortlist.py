"""The best classes of a very large HyCal model without a look at every class.

An approximate index finds the classes whose mean image is nearest to a query, and only those are scored, by the same
Gaussians as always. What needs every class is the z-score: the mean and the spread of each measure over all classes.
With the query v extended to x = [v, 1] and a fusion of fixed length, the cosine of a class is x . a_c and its distance
x'Q_c x, so over C classes

    cosine:    mean = x . (sum of a_c)/C,       mean square = x' (sum of a_c a_c')/C x,
    distance:  mean = x' (sum of Q_c)/C x,

one vector and two matrices whatever C is: exact. The mean square of the distance is of the fourth degree and has no
such form; nor has anything that is divided by |v + t_c| (fusion "sum"). Those moments are estimated on a fixed sample
of the classes, or, if asked for, taken over all of them. `python -m benchmarks.scale` prints errors and costs.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.algebra.bank import GaussianBank
from hycal.algebra.covariance import directions
from hycal.algebra.logit_phi import SMALLEST_SPREAD
from hycal.algebra.scores import blend_log_odds
from hycal.classifiers.hycal import HyCal
from hycal.errors import HyCalError, load_extra
from hycal.state.records import ClassRecord
from hycal.validation import Doubles, Floats, check_queries

_ROWS_AT_ONCE = 8192
_QUERIES_AT_ONCE = 256
_CONNECTIVITY = 32  # neighbours of a class in the graph; with 16, one best class in 250 cannot be reached at all
_EXPANSION = 4  # classes that the search keeps in view, for each one it returns; with 1, it misses one in 25


class Shortlist:
    """The present knowledge of a HyCal model, prepared to answer from the classes nearest to a query.

    Parameters
    ----------
    model : HyCal
        Learned. When it learns more, make a new shortlist.
    nearest : int, default=128
        Classes that are scored for each query.
    sample : int or None, default=None
        Classes on which moments without a closed form are estimated, such as 2048: answers in a small part of the
        time. None takes all of them: every moment is exact, and a query costs half of scoring every class or more.

    Notes
    -----
    Building costs one insertion into an HNSW graph for each class, and 2 (K + 1) C d^2 operations for the closed forms;
    a query costs O(log C) distances, and (nearest + sample) classes of exact scoring; sample is C if it is None.

    Examples
    --------
    >>> from hycal import HyCal
    >>> from hycal.testing.streams import Stream, learn
    >>> stream = Stream.synthetic(0, shots=[[3] * 50], width=16)
    >>> model = learn(HyCal(), stream.steps)
    >>> bool((Shortlist(model, nearest=10).predict(stream.queries) == model.predict(stream.queries)).all())
    True
    """

    def __init__(self, model: HyCal, *, nearest: int = 128, sample: int | None = None) -> None:
        if model.rule == "literal":
            raise HyCalError('A shortlist needs z-scores, and rule="literal" has none. Set rule="paper" first.')
        current = model.snapshot()
        self._model, self._records = model, current.records
        self._bank: GaussianBank = current.value.bank.whole
        self._records.check_seen("A shortlist")
        classes = len(self._records.labels)
        self.nearest = min(nearest, classes)
        self._weights = model.weights(self._records.counts)
        self._closed = None if sample is None else _Closed.of(self._bank)
        self._sample = self._bank if sample is None else _spread_over(self._bank, sample)
        self._index = _index(_mean_images(self._records.ordered), self.nearest)

    def exactly(self) -> Shortlist:
        """Return the same shortlist with `sample=None`; the index is shared."""
        other = copy.copy(self)
        other._closed, other._sample = None, self._bank
        return other

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the best label for each query."""
        columns, _ = self.best(X, 1)
        return self._records.classes[columns[:, 0]]

    def best(self, X: npt.ArrayLike, most: int = 5) -> tuple[npt.NDArray[np.intp], Floats]:
        """Return the best classes of each query, as positions in `classes_`, and their scores; best first."""
        if self._model.records_ is not self._records:
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
        cosines, closeness = (_moments(scores) for scores in self._sample.evaluate(queries))
        if self._closed is None:
            return cosines, closeness
        cosines, mean = self._closed(queries)
        return cosines, (mean, closeness[1])


@dataclass(frozen=True, eq=False)
class _Closed:
    """What has a closed form, in the rows that a query [v, 1] meets."""

    classes: int
    length: float
    # (d + 1,) and (d + 1, d + 1): of the rows for cosines; centred before they are squared, so that nothing cancels.
    mean: Doubles
    covariance: Doubles
    # (d + 1, d + 1), (d + 1,) and a number: the mean over the classes of minus the scaled distance.
    quadratic: Doubles
    linear: Doubles
    constant: float

    @classmethod
    def of(cls, bank: GaussianBank) -> _Closed | None:
        """Return the closed forms of a bank; None where lengths depend on the query."""
        length, classes = bank.options.fusion.fixed_length, len(bank.means)
        if length is None:
            return None
        mean = bank.means.mean(axis=0, dtype=np.float64)
        base, slope, curve, along_first = bank.terms[:, :, 0].T.astype(np.float64)
        covariance, quadratic, linear = np.zeros((len(mean), len(mean))), np.zeros((len(mean), len(mean))), 0.0 * mean
        for rows in _blocks(classes):
            covariance += _square(bank.means[rows] - mean)
            h = bank.means[rows].astype(np.float64)
            sloped = np.flatnonzero(np.diff(bank.starts)[rows])  # others have no factors
            h[sloped] -= along_first[rows][sloped, None] * bank.factors[bank.starts[rows][sloped]]
            quadratic += _square(h * np.sqrt(curve[rows])[:, None])
            linear += slope[rows] @ h
        for rows in _blocks(len(bank.factors)):
            quadratic += _square(bank.factors[rows])
        return cls(
            classes=classes,
            length=length,
            mean=mean,
            covariance=covariance / classes,
            quadratic=quadratic / classes,
            linear=linear / classes,
            constant=float(base.mean()),
        )

    def __call__(self, queries: Floats) -> tuple[tuple[Doubles, Doubles], Doubles]:
        """Return mean and deviation of the cosines, and the mean of minus the scaled distance, for every query."""
        x = np.column_stack([queries.astype(np.float64), np.ones(len(queries))]) / self.length
        variance = np.einsum("nd,nd->n", x @ self.covariance, x) * self.classes / max(self.classes - 1, 1)
        spread = np.maximum(np.sqrt(np.maximum(variance, 0.0)), SMALLEST_SPREAD)
        closeness = np.einsum("nd,nd->n", x @ self.quadratic, x) + x @ self.linear - self.constant
        return (x @ self.mean, spread), closeness


def _blocks(count: int) -> Iterator[slice]:
    """Yield slices of some thousand rows."""
    for start in range(0, count, _ROWS_AT_ONCE):
        yield slice(start, min(start + _ROWS_AT_ONCE, count))


def _square(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return rows.T @ rows


def _spread_over(bank: GaussianBank, count: int) -> GaussianBank:
    """Return `count` of the classes, or all if there are no more, at even distances in the order of their labels."""
    classes = len(bank.means)
    return bank.subset(np.unique(np.linspace(0, classes - 1, min(count, classes)).astype(np.intp)))


def _moments(scores: Floats) -> tuple[Doubles, Doubles]:
    mean = scores.mean(axis=0, dtype=np.float64)
    deviations = scores - mean
    spread = np.sqrt(np.einsum("cn,cn->n", deviations, deviations) / max(len(scores) - 1, 1))
    return mean, np.maximum(spread, SMALLEST_SPREAD)


def _mean_images(members: Sequence[ClassRecord]) -> Floats:
    return directions(np.stack([member.samples.mean for member in members])).astype(np.float32)


def _index(vectors: Floats, nearest: int) -> Any:
    usearch = load_extra("usearch.index", extra="shortlist", why="A shortlist")
    index = usearch.Index(
        ndim=vectors.shape[1],
        metric="ip",
        dtype="f16",
        connectivity=_CONNECTIVITY,
        expansion_search=_EXPANSION * nearest,
    )
    index.add(np.arange(len(vectors), dtype=np.uint64), vectors, threads=1)  # more would make a graph of chance
    return index
