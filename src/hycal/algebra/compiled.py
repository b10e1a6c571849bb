"""The element-wise work of scoring by Gaussians in compiled loops: each number is read once or twice, not thirty times.

`hycal.algebra.bank` and `hycal.algebra.scores` have the same in NumPy, which defines the results; these agree with them
up to the rounding of float32. exp and log are written out, with the polynomials of Cephes: LLVM makes vector code of
sums and products, and not of calls.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from hycal.algebra.fusion import SHORTEST
from hycal.algebra.logit_phi import LOGIT_PHI_P, LOGIT_PHI_Q, SHALLOW, SMALLEST_SPREAD
from hycal.validation import Floats

_f, _i = np.float32, np.int32
_ZERO, _HALF, _ONE, _NAN = _f(0.0), _f(0.5), _f(1.0), _f(np.nan)
_P0, _P1, _P2, _P3, _P4 = map(_f, LOGIT_PHI_P)
_Q0, _Q1, _Q2, _Q3, _Q4 = map(_f, LOGIT_PHI_Q)
_DEEP, _SPREAD, _SHORTEST, _LONGEST = _f(SHALLOW), _f(SMALLEST_SPREAD), _f(SHORTEST), _f(4.0)
_LOG2_E, _LN2_HIGH, _LN2_LOW = _f(1.44269504088896341), _f(0.693359375), _f(-2.12194440e-4)
_ROUND = _f(1.5 * 2**23)  # added and taken away, it rounds to a whole number
_E0, _E1, _E2, _E3, _E4, _E5 = map(
    _f, (5.0000001e-1, 1.66666655e-1, 4.1665796e-2, 8.333452e-3, 1.3982e-3, 1.98756915e-4)
)
_L0, _L1, _L2, _L3, _L4 = map(_f, (7.0376836e-2, -1.151461e-1, 1.167699874e-1, -1.242014e-1, 1.4249323e-1))
_L5, _L6, _L7, _L8 = map(_f, (-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1))
_EXPONENT, _MANTISSA, _ROOT_HALF = _i(23), _i(0x7FFFFF), _i(0x3F3504F3)  # bits of sqrt(1/2)

_options: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy", "fastmath": {"contract", "nsz"}}
_inside: dict[str, Any] = {"inline": "always", "fastmath": {"contract", "nsz"}}


def _bits_code(context: Any, x: Any) -> Any:
    """Make the code that returns the bits of a float32 as int32."""
    return types.int32(types.float32), lambda _, builder, __, args: builder.bitcast(args[0], ir.IntType(32))


def _float_code(context: Any, x: Any) -> Any:
    """Make the code that returns the float32 of which an int32 has the bits."""
    return types.float32(types.int32), lambda _, builder, __, args: builder.bitcast(args[0], ir.FloatType())


_bits: Any = intrinsic(_bits_code)
_float: Any = intrinsic(_float_code)


@njit(**_inside)
def _exp(x: Any) -> Any:
    n = (x * _LOG2_E + _ROUND) - _ROUND
    r = x - n * _LN2_HIGH - n * _LN2_LOW
    y = ((((_E5 * r + _E4) * r + _E3) * r + _E2) * r + _E1) * r + _E0
    return (y * r * r + r + _ONE) * _float(_i((_i(n) + _i(127)) << _EXPONENT))


@njit(**_inside)
def _log(x: Any) -> Any:
    bits = _bits(x) - _ROOT_HALF
    n = _f(bits >> _EXPONENT)
    r = _float(_i((bits & _MANTISSA) + _ROOT_HALF)) - _ONE
    y = ((((((((_L0 * r + _L1) * r + _L2) * r + _L3) * r + _L4) * r + _L5) * r + _L6) * r + _L7) * r + _L8) * r
    return r + (y * r * r + n * _LN2_LOW - _HALF * r * r) + n * _LN2_HIGH


@njit(**_inside)
def _odds(z: Any) -> Any:
    u = z * z
    P = (((_P4 * u + _P3) * u + _P2) * u + _P1) * u + _P0
    return _exp(z * P / ((((_Q4 * u + _Q3) * u + _Q2) * u + _Q1) * u + _Q0))


@njit(**_options)
def measure(
    mu_z: Floats,
    squares_of_length: Floats,
    inverse_length: np.float32,
    W_z: Floats,
    starts: npt.NDArray[np.intp],
    terms: Floats,
    cosines: Floats,
    closeness: Floats,
) -> None:
    """Fill `cosines` and `closeness` of the classes of one block, as `GaussianBank._evaluate_block` does.

    `squares_of_length` is (C, n), or (0, n) where `inverse_length` holds for all.
    """
    for c in range(len(mu_z)):
        mu, cosine, close = mu_z[c], cosines[c], closeness[c]
        first, last = starts[c] - starts[0], starts[c + 1] - starts[0]
        close[:] = _ZERO
        for row in range(first, last):
            w = W_z[row]
            for j in range(len(close)):
                close[j] += w[j] * w[j]
        c0, c1, c2, b = terms[c, 0, 0], terms[c, 1, 0], terms[c, 2, 0], terms[c, 3, 0]
        w = W_z[first] if last > first else mu
        b = b if last > first else _ZERO
        for j in range(len(close)):
            inverse = inverse_length
            if len(squares_of_length):
                inverse = _ONE / np.sqrt(min(max(squares_of_length[c, j], _SHORTEST), _LONGEST))
            h = (mu[j] - b * w[j]) * inverse
            cosine[j] = mu[j] * inverse
            close[j] = close[j] * inverse * inverse + (h * c2 + c1) * h - c0


@njit(**_options)
def moments(scores: Floats, means: Floats, scales: Floats) -> None:
    """Fill the mean and the inverse standard deviation of (C, n) scores over the classes, each (n,)."""
    rest = np.zeros_like(means)
    means[:], scales[:] = _ZERO, _ZERO
    for c in range(len(scores)):
        row = scores[c]
        for j in range(len(means)):
            means[j] += row[j]
    share, freedom = _f(1.0 / len(scores)), _f(max(len(scores) - 1, 1))
    for j in range(len(means)):
        means[j] *= share
    for c in range(len(scores)):
        row = scores[c]
        for j in range(len(means)):
            above = row[j] - means[j]
            rest[j] += above
            scales[j] += above * above
    for j in range(len(means)):  # `rest` is what rounding left in the mean
        means[j] += rest[j] * share
        spread = np.sqrt(max(scales[j] - rest[j] * rest[j] * share, _ZERO) / freedom)
        scales[j] = _ONE / max(spread, _SPREAD)


@njit(**_options)
def blend(
    cosines: Floats,
    closeness: Floats,
    cosine_mean: Floats,
    cosine_scale: Floats,
    mean: Floats,
    scale: Floats,
    weights: Floats,
    log_odds: Floats,
) -> np.int32:
    """Fill the log-odds of w Phi(z_closeness) + (1 - w) Phi(z_cosine); NaN where a z-score is beyond SHALLOW.

    The measures and results are (C, n), the moments (n,), the weights (C,). Return the number of NaN.
    """
    deep = _i(0)
    for c in range(len(weights)):
        w, rest = weights[c], _ONE - weights[c]
        cosine, close, row = cosines[c], closeness[c], log_odds[c]
        for j in range(len(mean)):
            z_cosine = (cosine[j] - cosine_mean[j]) * cosine_scale[j]
            z_distance = (close[j] - mean[j]) * scale[j]
            a = _odds(min(max(z_distance, -_DEEP), _DEEP))
            b = _odds(min(max(z_cosine, -_DEEP), _DEEP))
            p, q = (b + _ONE) * w, (a + _ONE) * rest
            far = (abs(z_cosine) > _DEEP) | (abs(z_distance) > _DEEP)
            row[j] = _NAN if far else _log((a * p + b * q) / (p + q))
            deep += _i(far)
    return deep
