"""Moments: what is left of samples once a model is sealed.

A class keeps its number of samples, their mean and, where its method needs it, a factor of their scatter. Classes that
share a covariance keep one factor together. Both are sums, so more samples, and other models, can be added.

    symbol  field    shape   meaning (a class of K samples, embeddings of width d, the method's rows of width D)
    K       count    scalar
    m       centre   (d,)    mean of the embeddings
    mu      mean     (D,)    mean of the rows that the method computes on: the embeddings, or what it makes of them
    F       factor   (r, D)  F'F is the scatter of the rows around mu; r is at most min(K - 1, D)

The rows of F are eigenvectors of the scatter, the longest first, times the roots of its eigenvalues. They depend on the
scatter alone: none of them is a sample.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from hycal.validation import Doubles, Floats

_AT_ONCE = 1024  # deviations of a product
_NOTHING = 1e-14  # of the largest eigenvalue: a smaller one is the rounding of float32 rows


@dataclass(frozen=True, eq=False)
class Moments:
    """The moments of one class. The table above describes the fields."""

    count: int
    centre: Floats
    mean: Floats
    factor: Floats

    @classmethod
    def of(cls, samples: Floats, rows: npt.NDArray[np.floating], deviations: Doubles) -> Moments:
        """Return the moments of samples (K, d).

        `rows` (K, D) are what the method makes of them; the same array where it makes nothing. `deviations` are `rows`
        minus their mean, or none of them, (0, D), where the class keeps no scatter of its own.
        """
        centre = _single(samples.mean(axis=0, dtype=np.float64))
        mean = centre if rows is samples else _single(rows.mean(axis=0, dtype=np.float64))
        return cls(len(samples), centre, mean, factor_of(deviations, most=len(samples) - 1))

    def join(self, other: Moments) -> Moments:
        """Return the moments of the samples of both."""
        count = self.count + other.count
        share = other.count / count
        shift = other.mean.astype(np.float64) - self.mean
        moved = np.sqrt(self.count * share) * shift[None]
        centre = _single((1.0 - share) * self.centre.astype(np.float64) + share * other.centre)
        mean = centre if self.mean is self.centre else _single(self.mean + share * shift)
        return Moments(count, centre, mean, factor_of(np.concatenate([self.factor, other.factor, moved]), count - 1))

    def without_spread(self) -> Moments:
        """Return the same without its factor."""
        return replace(self, factor=self.factor[:0])

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self.factor.nbytes + self.mean.nbytes + (0 if self.mean is self.centre else self.centre.nbytes)

    def rows(self, width: int = 0) -> Doubles:
        """Return rows that have the mean and the covariance of the class, and are no samples.

        Their number is min(K, D + 1); `width` takes the place of D where the rows will become so wide.
        """
        size = min(self.count, (width or len(self.mean)) + 1)
        contrasts = _contrasts(size)[:, : len(self.factor)]
        scale = np.sqrt((size - 1) / max(self.count - 1, 1))
        return self.mean + scale * (contrasts @ self.factor.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Spread:
    """The scatter F'F of samples around the means of their classes, and its degrees of freedom."""

    freedom: int
    factor: Floats

    @classmethod
    def of(cls, width: int) -> Spread:
        """Return the spread of no samples."""
        return cls(0, np.empty((0, width), np.float32))

    @property
    def scatter(self) -> Doubles:
        """F'F, (D, D)."""
        factor = self.factor.astype(np.float64)
        return factor.T @ factor

    def plus(self, scatter: Doubles, freedom: int) -> Spread:
        """Return the spread with a scatter added, of so many degrees of freedom."""
        total = self.scatter + scatter
        return Spread(self.freedom + freedom, _of_scatter(total, self.freedom + freedom))

    def plus_rows(self, rows: Doubles, freedom: int) -> Spread:
        """Return the same with the scatter of rows added; no (D, D) matrix is built where rows are fewer."""
        together = np.concatenate([self.factor.astype(np.float64), rows])
        return Spread(self.freedom + freedom, factor_of(together, self.freedom + freedom))


class Scatters:
    """Sums of scatters to add to the spreads of groups; a group without one takes none.

    Deviations are collected until there are enough of them for one product: as many as they are wide, where that is
    much. Fewer need no (D, D) matrix.
    """

    def __init__(self, spreads: Mapping[str, Spread]) -> None:
        self._spreads = spreads
        self._sums: dict[str, Doubles] = {}
        self._waiting: defaultdict[str, list[Doubles]] = defaultdict(list)
        self._freedoms: defaultdict[str, int] = defaultdict(int)

    def add(self, key: str, deviations: Doubles, freedom: int) -> None:
        """Add rows that have the scatter of so many degrees of freedom."""
        if key in self._spreads:
            self._waiting[key].append(deviations)
            self._freedoms[key] += freedom
            if sum(map(len, self._waiting[key])) >= max(_AT_ONCE, deviations.shape[1]):
                self._multiply(key)

    def _multiply(self, key: str) -> None:
        deviations = np.concatenate(self._waiting.pop(key))
        scatter = deviations.T @ deviations
        self._sums[key] = self._sums[key] + scatter if key in self._sums else scatter

    def total(self) -> dict[str, Spread]:
        """Return the spreads with all that was added."""
        few = {
            key: self._spreads[key].plus_rows(np.concatenate(self._waiting.pop(key)), self._freedoms[key])
            for key, rows in list(self._waiting.items())
            if key not in self._sums and rows[0].shape[1] > _AT_ONCE
        }
        for key in list(self._waiting):
            self._multiply(key)
        grown = {key: self._spreads[key].plus(scatter, self._freedoms[key]) for key, scatter in self._sums.items()}
        return {**self._spreads, **few, **grown}


def factor_of(rows: Doubles, most: int) -> Floats:
    """Return the factor of rows'rows with at most `most` rows, in the form that the scatter alone decides."""
    if not len(rows) or most < 1:
        return np.empty((0, rows.shape[1]), np.float32)
    if len(rows) > rows.shape[1]:
        return _of_scatter(rows.T @ rows, most)
    e, U = np.linalg.eigh(rows @ rows.T)
    return _canonical(e, U.T @ rows, most)


def _of_scatter(scatter: Doubles, most: int) -> Floats:
    e, V = np.linalg.eigh(scatter)
    return _canonical(e, np.sqrt(np.maximum(e, 0.0))[:, None] * V.T, most)


def _canonical(e: Doubles, rows: Doubles, most: int) -> Floats:
    """Return the rows of eigenvalues that are not rounding, the longest first, their largest entry positive."""
    kept = rows[np.flatnonzero(e > _NOTHING * max(e[-1], 0.0))[::-1][:most]]
    largest = np.take_along_axis(kept, np.abs(kept).argmax(axis=1)[:, None], axis=1)
    return _single(kept * np.sign(largest))


@lru_cache(maxsize=64)
def _contrasts(size: int) -> Doubles:
    """Return orthonormal columns that sum to zero, (size, size - 1), after Helmert."""
    steps = np.arange(1.0, size)
    columns = np.triu(np.ones((size, size - 1))) if size > 1 else np.ones((size, 0))
    columns[np.arange(1, size), np.arange(size - 1)] = -steps
    columns /= np.sqrt(steps * (steps + 1.0))
    return columns


def _single(array: Doubles) -> Floats:
    return np.ascontiguousarray(array, np.float32)
