"""Pure functions on score matrices of shape (classes, queries): normalisation, weights, blending, probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_ndtr, softmax

from hycal.validation import Doubles, Floats

_SMALLEST_SPREAD = 1e-6
_SHALLOW = 8.0  # standard deviations; at most C/64 of C z-scores can lie beyond (they square-sum to C - 1)
# log(Phi(z)/(1 - Phi(z))) = z P(z²)/Q(z²) for |z| <= 8, to 7e-7; P and Q from the constant term up.
_LOGIT_PHI_P = (1.5957695851667444, 0.23868205011687546, 0.021119220275485167, 7.41524745282198e-4, 4.047505285834277e-6)
_LOGIT_PHI_Q = (1.0, 0.10402949768856193, 0.00854726973275214, 1.4351527033911032e-4, 1.9431067258109502e-7)


def standardise(scores: Floats) -> Floats:
    """Return z-scores over the classes (axis 0), with the sample standard deviation.

    One candidate has no spread: its z-score is 0. So have equal scores.

    >>> standardise(np.array([[1.0], [2.0], [3.0]], dtype=np.float32)).ravel()
    array([-1.,  0.,  1.], dtype=float32)
    """
    z = scores - scores.mean(axis=0)
    if len(z) > 1:
        z -= z.mean(axis=0)  # what rounding left of the mean
        spread = np.sqrt(np.einsum("cn,cn->n", z, z) / (len(z) - 1))
        z *= np.float32(1.0) / np.maximum(spread, np.float32(_SMALLEST_SPREAD))
    return z


def shot_weights(counts: npt.ArrayLike, alpha: float, beta: float) -> Doubles:
    """Return sigmoid((K - alpha)/beta); at beta = 0 its limit, a step with 1/2 at alpha.

    >>> shot_weights([5, 10, 20], alpha=10, beta=0)
    array([0. , 0.5, 1. ])
    """
    above = np.asarray(counts, dtype=np.float64) - alpha
    if beta == 0:
        return np.heaviside(above, 0.5)
    weights: Doubles = expit(above / beta)
    return weights


def blend_log_odds(z_cosine: Floats, z_distance: Floats, weights: Doubles) -> Floats:
    """Return the log-odds of s = w Phi(z_distance) + (1 - w) Phi(z_cosine).

    The paper's score s saturates: with 1,000 classes the leaders stand beyond eight standard deviations, where Phi is 1
    to the last bit and they tie. log(s/(1 - s)) is monotone in s and keeps both tails, so it ranks the same and cannot
    tie; `scipy.special.expit` gives s back. With the odds a of Phi(z_distance) and b of Phi(z_cosine),
    s/(1 - s) = (a b + w a + (1 - w) b) / (1 + w b + (1 - w) a), in which nothing cancels.

    >>> s = blend_log_odds(np.zeros((1, 1), np.float32), np.zeros((1, 1), np.float32), np.array([0.3]))
    >>> float(expit(s)[0, 0])
    0.5
    """
    w = weights.astype(np.float32)[:, None]
    a, b = _odds_of_phi(z_distance), _odds_of_phi(z_cosine)
    rest = np.float32(1.0) - w
    top = a + rest
    top *= b
    below = a * rest
    a *= w
    top += a
    b *= w
    below += b
    below += np.float32(1.0)
    top /= below
    log_odds = np.log(top, out=top)
    deep = np.unravel_index(np.flatnonzero(_beyond_fit(z_cosine) | _beyond_fit(z_distance)), log_odds.shape)
    log_odds[deep] = _deep_log_odds(z_cosine[deep], z_distance[deep], weights[deep[0]])
    return log_odds


def _beyond_fit(z: Floats) -> npt.NDArray[np.bool_]:
    return np.abs(z) > np.float32(_SHALLOW)


def _odds_of_phi(z: Floats) -> Floats:
    """Return Phi(z)/(1 - Phi(z)), for z held within the fit's range."""
    z = np.clip(z, -_SHALLOW, _SHALLOW)
    u = z * z
    z *= _polynomial(_LOGIT_PHI_P, u)
    z /= _polynomial(_LOGIT_PHI_Q, u)
    return np.exp(z, out=z)


def _polynomial(coefficients: tuple[float, ...], u: Floats) -> Floats:
    *lower, next_to_last, last = (np.float32(coefficient) for coefficient in coefficients)
    total = u * last
    total += next_to_last
    for coefficient in reversed(lower):
        total *= u
        total += coefficient
    return total


def _deep_log_odds(z_cosine: Floats, z_distance: Floats, w: Doubles) -> Doubles:
    """Return the same in float64 logarithms throughout: slower, and right however deep the tail."""
    cosine, distance = z_cosine.astype(np.float64), z_distance.astype(np.float64)
    with np.errstate(divide="ignore"):  # log 0 of a weight of 0 or 1 is -inf, and adds nothing
        log_w, log_rest = np.log(w), np.log1p(-w)
    above = np.logaddexp(log_w + log_ndtr(distance), log_rest + log_ndtr(cosine))
    below = np.logaddexp(log_w + log_ndtr(-distance), log_rest + log_ndtr(-cosine))
    return above - below


def probabilities(scores: npt.NDArray[Any], temperature: float = 1.0) -> Doubles:
    """Return the softmax of (queries, classes) scores over the classes."""
    result: Doubles = softmax(np.asarray(scores, dtype=np.float64) / temperature, axis=1)
    return result
