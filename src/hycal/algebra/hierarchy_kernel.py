"""Kernel evidence for the classes of a domain: ridge regression of their one-hot labels on the domain's own samples.

The Gaussians of `hycal.algebra.hierarchy` share one covariance in a domain, so their evidence for a class is linear in
the query. The regression follows classes of any shape.

    f(x) = k(x)'A^-1 Y        k(x)_i = exp(-|x - x_i|^2/t)        A = K + r D

D gives every class the same weight: the ridge of a sample grows with the number of samples of its class. A sample that
is left out has f_i = y_i - (A^-1 Y)_i/(A^-1)_ii; t and D stay. All is float32, for r keeps A well conditioned.

    symbol   field          shape       meaning (domain g of N_g samples and C_g classes)
    x_i      samples        (N_g, d)    the samples, unit vectors
             own            (N_g,)      position of the class of each sample in the domain
    t        variance       scalar      mean squared distance of the samples from their mean
    Y                       (N_g, C_g)  one-hot labels
    K                       (N_g, N_g)  kernel of the samples with themselves
    r                       scalar      ridge
    D                       (N_g, N_g)  diagonal: K_c C_g/N_g for a sample of a class of K_c
    A^-1 Y   coefficients   (N_g, C_g)
    A^-1_ii  diagonal       (N_g,)
    L^-1     half           (N_g, N_g)  A^-1 = L^-1' L^-1
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hycal.algebra.cholesky import factorise, inverse_factor
from hycal.validation import Floats

RIDGE = 0.2
_LEAST_VARIANCE = 1e-4  # of t: products of unit vectors are rounded to 1e-7, and the kernel divides them by t
_CHEAP = 1024  # samples of a domain that always has a regression
MOST = 4096  # samples of the largest domain that has one
_MANY_SHOTS = 12  # samples of a class, on average, that are worth the cost of a larger domain


def kernel_pays(samples: int, classes: int) -> bool:
    """Whether a domain of so many samples and classes has a regression, which costs samples^3/3 operations."""
    return classes > 1 and (samples <= _CHEAP or _MANY_SHOTS * classes <= samples <= MOST)


def kernel_operations(samples: int, classes: int, width: int) -> float:
    """Return the operations of `KernelRegression.fit`: the kernel, its Cholesky factor and inverse, the solution."""
    if not kernel_pays(samples, classes):
        return 0.0
    return samples**2 * (2.0 * width + (1 + 1) / 3.0 * samples + 2.0 * classes)


@dataclass(frozen=True, eq=False)
class KernelRegression:
    """The regression of one domain. The table above describes the arrays."""

    samples: Floats
    own: npt.NDArray[np.intp]
    variance: float
    coefficients: Floats
    diagonal: Floats
    half: Floats

    @classmethod
    def fit(cls, samples: Floats, own: npt.NDArray[np.intp]) -> KernelRegression:
        """Return the regression of samples of the classes `own`."""
        deviations = samples - samples.mean(axis=0)
        variance = max(float(np.mean(np.sum(deviations**2, axis=1))), _LEAST_VARIANCE)
        A = _kernel(samples, samples, variance)
        A.flat[:: len(A) + 1] += class_ridges(np.bincount(own))[own]
        inverse = inverse_factor(factorise(A))
        Y = np.eye(int(own.max()) + 1, dtype=np.float32)[own]
        diagonal = np.einsum("ij,ij->j", inverse, inverse)
        return cls(samples, own, variance, inverse.T @ (inverse @ Y), diagonal, inverse)

    def without_each(self, X: Floats, own: npt.NDArray[np.intp]) -> Floats:
        """Return f of learned samples of the classes `own`, each without itself, (n, C_g)."""
        held_out = self.positions(X, own)
        f: Floats = -self.coefficients[held_out] / self.diagonal[held_out, None]
        f[np.arange(len(held_out)), own] += 1.0
        return f

    def positions(self, X: Floats, own: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Return the positions of samples of the classes `own`, -1 for what is none."""
        samples = zip(X, own.tolist(), strict=True)
        return np.array([self._position_of.get((row.tobytes(), place), -1) for row, place in samples], dtype=np.intp)

    @cached_property
    def _position_of(self) -> dict[tuple[bytes, int], int]:
        samples = zip(self.samples, self.own.tolist(), strict=True)
        return {(row.tobytes(), place): position for position, (row, place) in enumerate(samples)}

    def __call__(self, X: Floats) -> Floats:
        """Return f of queries, (n, C_g)."""
        return self.kernel(X) @ self.coefficients

    def kernel(self, X: Floats) -> Floats:
        """Return k of queries, (n, N_g)."""
        return _kernel(X, self.samples, self.variance)

    def between(self, X: Floats, others: Floats) -> Floats:
        """Return the kernel of the rows of X with those of `others`."""
        return _kernel(X, others, self.variance)


def class_ridges(counts: npt.NDArray[np.intp]) -> Floats:
    """Return the ridge of a sample of each class."""
    return (RIDGE * counts / counts.mean()).astype(np.float32)


def _kernel(X: Floats, samples: Floats, variance: float) -> Floats:
    """Return k of each row of X, (n, N_g); between unit vectors |x - y|^2 is 2 - 2 x.y."""
    K: Floats = X @ samples.T
    K -= np.float32(1.0)
    K *= np.float32(2.0 / variance)
    return np.exp(K, out=K)
