"""Feature maps, and the linear head on top of a feature map, which most methods reduce to.

Each random map has its own generator: the same width, size and seed give the same numbers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from hycal.parallel.threads import map_rows
from hycal.validation import Doubles, Floats

_COLUMNS_AT_ONCE = 1024


class Features(Protocol):
    """A map from embeddings (n, d) to features (n, size)."""

    @property
    def size(self) -> int:
        """Number of features."""

    def __call__(self, X: Doubles) -> Doubles:
        """Return the features of the rows of X."""


@dataclass(frozen=True, eq=False)
class Identity:
    """The embedding itself."""

    size: int

    def __call__(self, X: Doubles) -> Doubles:
        """Return X."""
        return X


@dataclass(frozen=True, eq=False)
class Relu:
    """max(0, X V), the random projection of RanPAC and RAIL.

    >>> Relu(np.array([[1.0, -1.0]]))(np.array([[2.0]]))
    array([[2., 0.]])
    """

    projection: Doubles

    @classmethod
    def gaussian(cls, width: int, size: int, seed: int) -> Self:
        """Draw V from N(0, 1)."""
        return cls(np.random.default_rng(seed).standard_normal((width, size)))

    @classmethod
    def uniform(cls, width: int, size: int, seed: int) -> Self:
        """Draw V from U(-1/sqrt(d), 1/sqrt(d))."""
        bound = 1.0 / np.sqrt(width)
        return cls(np.random.default_rng(seed).uniform(-bound, bound, (width, size)))

    @property
    def size(self) -> int:
        """M."""
        return self.projection.shape[1]

    def __call__(self, X: Doubles) -> Doubles:
        """Return the features of the rows of X."""
        H = X @ self.projection
        return np.maximum(H, 0.0, out=H)

    def parts(self) -> Iterator[Self]:
        """Yield maps to consecutive features, so that no (n, size) matrix has to be held."""
        for start in range(0, self.size, _COLUMNS_AT_ONCE):
            yield replace(self, projection=self.projection[:, start : start + _COLUMNS_AT_ONCE])


@dataclass(frozen=True, eq=False)
class Gelu(Relu):
    """X V P(z < X V) with z standard normal, the smooth form of `Relu`: the random projection of AnaCP."""

    def __call__(self, X: Doubles) -> Doubles:
        """Return the features of the rows of X."""
        from scipy.special import ndtr  # takes longer to import than an answer of most methods

        H = X @ self.projection
        H *= ndtr(H)
        return H


@dataclass(frozen=True, eq=False)
class Fourier:
    """sqrt(2/D) cos(X W + b): random features whose inner product tends to exp(-gamma |x - y|^2).

    Rahimi and Recht, Random features for large-scale kernel machines, NeurIPS 2007.
    """

    frequencies: Doubles
    phases: Doubles

    @classmethod
    def draw(cls, width: int, size: int, gamma: float, seed: int) -> Fourier:
        """Draw W from N(0, 2 gamma) and b from U(0, 2 pi)."""
        rng = np.random.default_rng(seed)
        frequencies = np.sqrt(2.0 * gamma) * rng.standard_normal((width, size))
        return cls(frequencies, rng.uniform(0.0, 2.0 * np.pi, size))

    @property
    def size(self) -> int:
        """D."""
        return len(self.phases)

    def __call__(self, X: Doubles) -> Doubles:
        """Return the features of the rows of X."""
        angles = X @ self.frequencies
        angles += self.phases
        np.cos(angles, out=angles)
        angles *= np.sqrt(2.0 / self.size)
        return angles


@dataclass(frozen=True, eq=False)
class StoredSamples:
    """Base of kernels: one feature for every stored sample. Samples and queries are unit vectors."""

    samples: Doubles

    @property
    def size(self) -> int:
        """N."""
        return len(self.samples)

    @abstractmethod
    def __call__(self, X: Doubles) -> Doubles:
        """Return the features of the rows of X."""

    def matrix(self) -> Doubles:
        """Return the kernel of the samples with themselves, (N, N), in Fortran order."""
        return self(self.samples).T  # symmetric: no copy


@dataclass(frozen=True, eq=False)
class Kernel(StoredSamples):
    """exp(-gamma |x - f|^2) for every stored sample f, where |x - f|^2 = 2 - 2 x.f."""

    gamma: float

    def __call__(self, X: Doubles) -> Doubles:
        """Return the features of the rows of X."""
        K = X @ self.samples.T
        K -= 1.0
        K *= 2.0 * self.gamma
        return np.exp(K, out=K)


@dataclass(frozen=True, eq=False)
class ArcCosine(StoredSamples):
    """(sin a + (pi - a) cos a)/(2 pi) for every stored sample, with a the angle to it.

    The mean product of a `Relu` feature of both with V from N(0, 1), and so the limit of infinitely many features. Cho
    and Saul, Kernel methods for deep learning, NeurIPS 2009.
    """

    def __call__(self, X: Doubles) -> Doubles:
        """Return the features of the rows of X."""
        cosines = np.clip(X @ self.samples.T, -1.0, 1.0)
        kernel: Doubles = np.sqrt(1.0 - cosines**2) + (np.pi - np.arccos(cosines)) * cosines
        kernel /= 2.0 * np.pi
        return kernel


@dataclass(frozen=True, eq=False)
class LinearHead:
    """Scores features(x) . w_c + b_c."""

    features: Features
    weights: Doubles  # (C, size)
    bias: Doubles  # (C,)

    @classmethod
    def on_embeddings(cls, weights: npt.NDArray[np.floating], bias: Doubles | None = None) -> LinearHead:
        """Return a head on the embeddings themselves."""
        classes, width = weights.shape
        return cls(Identity(width), weights.astype(np.float64), np.zeros(classes) if bias is None else bias)

    def __call__(self, X: Floats, columns: npt.NDArray[np.intp] | None = None) -> Doubles:
        """Return (n, C) scores, or those of the classes at `columns`."""
        weights, bias = (self.weights, self.bias) if columns is None else (self.weights[columns], self.bias[columns])

        def score(rows: Doubles) -> Doubles:
            return self.features(rows) @ weights.T + bias

        return map_rows(score, X, width=len(bias), numbers_per_row=self.features.size + len(bias))


def one_hot(counts: npt.NDArray[np.int64]) -> Doubles:
    """Return the one-hot targets, (N, C), of rows sorted by class; class c has `counts[c]` rows."""
    return np.repeat(np.eye(len(counts)), counts, axis=0)
