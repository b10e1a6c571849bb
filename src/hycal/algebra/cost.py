"""Operations counted from formulas: what it costs to add classes to a model; and what the machine has.

A count is in floating point operations, leading terms only; a multiplication and an addition are two. A symmetric
eigendecomposition of n rows counts 9 n³, a Cholesky factorisation or a triangular inverse n³/3, and a Gram matrix of
n rows and m columns n m². Each method's `operations` adds up what this package does from `partial_fit` to the first
answer.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Addition:
    """Classes that are added to a model. The defaults are the paper's case."""

    classes: int = 300  # C, after the addition
    added: int = 10  # classes that are added
    shots: int = 10  # K, samples of each class
    width: int = 512  # d, the embedding dimension
    features: int = 1024  # random features, where a method has them; 1024 as in the paper's baselines
    domains: int = 2  # G, after the addition

    @property
    def samples(self) -> int:
        """N, after the addition."""
        return self.classes * self.shots


def covariance_factor(shots: int, width: int) -> float:
    """Return the operations for the covariance factor of one class: Gram matrix, eigendecomposition, product."""
    return shots**2 * width + 9 * shots**3 + 2 * shots**2 * width


def regression(rows: int, width: int, columns: int) -> float:
    """Return the operations for a regression of `columns` targets on `width` features, in the smaller of its forms."""
    small = min(rows, width)
    return rows * width * small + small**3 / 3 + 2 * small**2 * columns + 2 * rows * width * columns


def regression_on_features(addition: Addition) -> float:
    """Return the operations for random features of all samples, and the regression on them."""
    a = addition
    return 2 * a.samples * a.width * a.features + regression(a.samples, a.features, a.classes)


def kernel_regression(addition: Addition) -> float:
    """Return the operations for a kernel of all samples, its Cholesky factor, and the solution for every class."""
    N = addition.samples
    return 2 * N**2 * addition.width + N**3 / 3 + 2 * N**2 * addition.classes


@cache
def machine_bytes() -> float:
    """Return the memory of this machine in bytes; infinite where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return float("inf")
