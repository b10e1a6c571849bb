"""Ridge regression on feature maps, by the smaller of two equal forms.

    (H'H + r I)^-1 H'Y  =  H'(H H' + r I)^-1 Y

The left form sums an (M, M) Gram matrix over blocks of samples; it is used where samples outnumber features. The right
form sums an (N, N) kernel over blocks of features. Neither holds H in memory. One eigendecomposition serves many r; a
solution for one r needs one Cholesky factorisation, which is several times cheaper.

    symbol  shape   meaning (N samples, M features, C classes)
    H       (N, M)  features of the samples
    Y       (N, C)  targets
    r       scalar  ridge
    K       (N, N)  kernel H H'
    A       (N, N)  K + r I
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.linalg.blas import dsyrk

from hycal.algebra.features import Relu
from hycal.validation import Doubles, Floats

_ROWS_AT_ONCE = 1024
_ROUNDING = 10.0 * np.finfo(np.float64).eps  # of the trace: a ridge below this is lost in the matrix's own rounding


def gram_matrix(size: int, blocks: Iterable[Doubles]) -> Doubles:
    """Return the lower triangle of the sum of B'B over (k, size) blocks B, in Fortran order, zero above."""
    total: Doubles = np.zeros((size, size), order="F")
    for block in (block for block in blocks if block.size):  # BLAS takes no empty matrix
        transposed = np.ascontiguousarray(block).T  # in Fortran order without a copy
        total = dsyrk(1.0, transposed, beta=1.0, c=total, trans=0, lower=1, overwrite_c=1)
    return total


def with_ridge(matrix: Doubles, ridge: float) -> Doubles:
    """Add the ridge, or what is left of it by rounding, to the diagonal of `matrix`; return it."""
    matrix.flat[:: len(matrix) + 1] += max(ridge, _ROUNDING * float(np.trace(matrix)))
    return matrix


def solve_ridge(matrix: Doubles, ridge: float, right: Doubles) -> Doubles:
    """Return (A + ridge I)^{-1} right, where `matrix` is A's lower triangle in Fortran order; overwrites `matrix`."""
    factor = cho_factor(with_ridge(matrix, ridge), lower=True, overwrite_a=True, check_finite=False)
    return cho_solve(factor, right, check_finite=False)


def ridge_weights(features: Relu, X: Floats, Y: Doubles, ridge: float) -> Doubles:
    """Return the ridge regression of Y on the features of X, shape (C, M), in the smaller form."""
    form = gram_weights if len(X) >= features.size else dual_weights
    return form(features, X, Y, ridge)


def gram_weights(features: Relu, X: Floats, Y: Doubles, ridge: float) -> Doubles:
    """Return the weights from the Gram matrix of the features."""
    gram, moments = gram_and_moments(features, X, Y)
    return solve_ridge(gram, ridge, moments).T


def dual_weights(features: Relu, X: Floats, Y: Doubles, ridge: float) -> Doubles:
    """Return the weights from the kernel of the samples."""
    return weights_of(features, X, solve_ridge(sample_kernel(features, X), ridge, Y))


def weights_of(features: Relu, X: Floats, coefficients: Doubles) -> Doubles:
    """Return the weights of features, (C, M), that the coefficients of samples, (N, C), stand for."""
    rows = X.astype(np.float64)
    return np.concatenate([coefficients.T @ part(rows) for part in features.parts()], axis=1)


def gram_and_moments(features: Relu, X: Floats, Y: Doubles) -> tuple[Doubles, Doubles]:
    """Return H'H, the lower triangle in Fortran order, and H'Y, (M, C)."""
    gram = gram_matrix(features.size, _feature_blocks(features, X))
    moments = np.zeros((features.size, Y.shape[1]))
    for H, targets in zip(_feature_blocks(features, X), _blocks(Y), strict=True):
        moments += H.T @ targets
    return gram, moments


def sample_kernel(features: Relu, X: Floats) -> Doubles:
    """Return the inner products of the features of all samples, (N, N): the lower triangle, in Fortran order."""
    rows = X.astype(np.float64)
    return gram_matrix(len(rows), (part(rows).T for part in features.parts()))


def gram_leave_one_out(features: Relu, X: Floats, ridge: float, rows: npt.NDArray[np.intp], fit: Doubles) -> Doubles:
    """Return the held-out residuals of samples from the Gram matrix: (f - y)/(1 - h), with h the leverage.

    `rows` are the n samples to leave out, `fit` is f - y, (n, C): their residuals in the regression on all.
    """
    H = features(X[rows].astype(np.float64))
    solved = solve_ridge(gram_matrix(features.size, _feature_blocks(features, X)), ridge, H.T)
    return fit / (1.0 - np.einsum("nm,mn->n", H, solved))[:, None]


def held_out_by_ridge(
    kernel: Doubles, Y: Doubles, rows: npt.NDArray[np.intp], ridges: Sequence[float]
) -> Iterator[Doubles]:
    """Yield, for each ridge, the predictions of the regression for its own samples, each left out.

    They are y_i - (A^-1 Y)_i/(A^-1)_ii, and need no weights. `kernel` is K, (N, N), in Fortran order; only its lower
    triangle is read, and it is overwritten. `rows` are the samples to leave out.
    """
    unit, each = np.zeros((len(kernel), len(rows))), np.arange(len(rows))
    unit[rows, each] = 1.0
    for number, ridge in enumerate(ridges, start=1):
        matrix = kernel if number == len(ridges) else kernel.copy(order="F")
        inverse = solve_ridge(matrix, ridge, unit)
        yield Y[rows] - (inverse.T @ Y) / inverse[rows, each][:, None]


def _feature_blocks(features: Relu, X: Floats) -> Iterator[Doubles]:
    for rows in _blocks(X):
        yield features(rows.astype(np.float64))


def _blocks(rows: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        yield rows[start : start + _ROWS_AT_ONCE]


def validation_errors(H: Doubles, Y: Doubles, held_out: Doubles, targets: Doubles, ridges: Iterable[float]) -> Doubles:
    """Return the mean squared error on held-out rows for every ridge, from one eigendecomposition.

    H (n, M) and Y (n, C) are features and targets to fit, `held_out` and `targets` those to predict.
    """
    dual = len(H) < H.shape[1]
    matrix = gram_matrix(len(H), [H.T]) if dual else gram_matrix(H.shape[1], [H])
    lost = _ROUNDING * float(np.trace(matrix))
    e, V = eigh(matrix, lower=True, overwrite_a=True, check_finite=False)
    left, right = (held_out @ H.T @ V, V.T @ Y) if dual else (held_out @ V, V.T @ (H.T @ Y))
    e = np.maximum(e, 0.0)
    return np.array([np.mean((left / (e + max(ridge, lost)) @ right - targets) ** 2) for ridge in ridges])
