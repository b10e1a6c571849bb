"""Functions on score matrices of shape (classes, queries): normalisation, weights, blending."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_ndtr, ndtr

from hycal.algebra.logit_phi import LOGIT_PHI_P, LOGIT_PHI_Q, SHALLOW, SMALLEST_SPREAD
from hycal.algebra.loops import compiled_loops
from hycal.parallel.threads import scratch
from hycal.validation import Doubles, Floats

_AT_ONCE = 2**18  # numbers of a block: what is done to them one after the other stays in the cache


def standardise(scores: Floats) -> Floats:
    """Turn scores into z-scores over the classes (axis 0), in place, with the sample standard deviation.

    The z-score is 0 where there is one candidate, and where all scores are equal.

    >>> standardise(np.array([[1.0], [2.0], [3.0]], dtype=np.float32)).ravel()
    array([-1.,  0.,  1.], dtype=float32)
    """
    scores -= scores.mean(axis=0)
    scores -= scores.mean(axis=0)  # the mean that rounding left
    if len(scores) > 1:
        spread = np.sqrt(np.einsum("cn,cn->n", scores, scores) / (len(scores) - 1))
        scores *= np.float32(1.0) / np.maximum(spread, np.float32(SMALLEST_SPREAD))
    return scores


def scale_to_unit(scores: Floats) -> Floats:
    """Scale scores over the classes (axis 0) to [0, 1], in place; all are 1 where they are equal.

    >>> scale_to_unit(np.array([[1.0], [2.0], [5.0]], dtype=np.float32)).ravel()
    array([0.  , 0.25, 1.  ], dtype=float32)
    """
    highest = scores.max(axis=0)
    spread = np.maximum(highest - scores.min(axis=0), np.float32(SMALLEST_SPREAD))
    scores -= highest
    scores /= spread
    scores += np.float32(1.0)
    return scores


def shot_weights(counts: npt.ArrayLike, alpha: float, beta: float) -> Doubles:
    """Return sigmoid((K - alpha)/beta); for beta = 0 its limit, a step with 1/2 at alpha.

    >>> shot_weights([5, 10, 20], alpha=10, beta=0)
    array([0. , 0.5, 1. ])
    """
    above = np.asarray(counts, dtype=np.float64) - alpha
    if beta == 0:
        return np.heaviside(above, 0.5)
    return expit(above / beta)


def blend_log_odds(z_cosine: Floats, z_distance: Floats, weights: Doubles) -> Floats:
    """Return the log-odds of s = w Phi(z_distance) + (1 - w) Phi(z_cosine).

    The paper's score s saturates: with 1,000 classes the best z-scores exceed eight standard deviations, where Phi is 1
    to the last bit, and the best classes tie. log(s/(1 - s)) is monotone in s and resolves both tails, so it ranks the
    same and does not tie; `scipy.special.expit` returns s. With the odds a of Phi(z_distance) and b of Phi(z_cosine),
    s/(1 - s) = (a p + b q)/(p + q) for p = w (1 + b) and q = (1 - w) (1 + a), where nothing cancels.

    There is one weight for each class, or one for each query if there is one class. The result lives in the work space
    of this thread: copy it before the next call.

    >>> s = blend_log_odds(np.zeros((1, 1), np.float32), np.zeros((1, 1), np.float32), np.array([0.3]))
    >>> float(expit(s)[0, 0])
    0.5
    """
    weights = weights if weights.ndim == 2 else weights[:, None]
    log_odds = scratch("log odds", z_cosine.shape)
    step = max(_AT_ONCE // max(z_cosine.shape[1], 1), 1)
    for start in range(0, len(log_odds), step):
        block = slice(start, start + step)
        _blend_block(z_cosine[block], z_distance[block], weights[block], log_odds[block])
    return log_odds


def _blend_block(z_cosine: Floats, z_distance: Floats, weights: Doubles, log_odds: Floats) -> None:
    """Write the log-odds of some classes to `log_odds`."""
    w, one = weights.astype(np.float32), np.float32(1.0)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):  # deep entries follow below
        a, u_a = _odds_of_phi(z_distance, "a")
        b, u_b = _odds_of_phi(z_cosine, "b")
        deep = np.unravel_index(np.flatnonzero((u_a > SHALLOW**2) | (u_b > SHALLOW**2)), a.shape)
        p, q = np.add(b, one, out=u_a), np.add(a, one, out=u_b)
        p *= w
        q *= one - w
        a *= p
        b *= q
        a += b
        p += q
        a /= p
        np.log(a, out=log_odds)
    of_deep = np.broadcast_to(weights, z_cosine.shape)[deep]
    log_odds[deep] = _deep_log_odds(z_cosine[deep], z_distance[deep], of_deep)


def blend_measures(cosines: Floats, closeness: Floats, weights: Doubles) -> Floats:
    """Return `blend_log_odds` of the z-scores of both measures, which may be changed in place."""
    loops = compiled_loops(cosines.size)
    if loops is None:
        return blend_log_odds(standardise(cosines), standardise(closeness), weights)
    n = cosines.shape[1]
    of_cosines, of_closeness = scratch("moments a", (2, n)), scratch("moments b", (2, n))
    loops.moments(cosines, *of_cosines)
    loops.moments(closeness, *of_closeness)
    log_odds = scratch("log odds", cosines.shape)
    if loops.blend(cosines, closeness, *of_cosines, *of_closeness, weights.astype(np.float32), log_odds):
        deep = np.nonzero(np.isnan(log_odds))
        z_cosine = (cosines[deep] - of_cosines[0][deep[1]]) * of_cosines[1][deep[1]]
        z_distance = (closeness[deep] - of_closeness[0][deep[1]]) * of_closeness[1][deep[1]]
        log_odds[deep] = _deep_log_odds(z_cosine, z_distance, weights[deep[0]])
    return log_odds


def blend_levels(cosine: Floats, closeness: Floats, weights: Doubles) -> Floats:
    """Return s = w closeness + (1 - w) cosine; weights are those of `blend_log_odds`.

    >>> float(blend_levels(np.full((1, 1), 0.5, np.float32), np.ones((1, 1), np.float32), np.array([0.25]))[0, 0])
    0.625
    """
    w = (weights if weights.ndim == 2 else weights[:, None]).astype(np.float32)
    return w * closeness + (np.float32(1.0) - w) * cosine


def _odds_of_phi(z: Floats, name: str) -> tuple[Floats, Floats]:
    """Return Phi(z)/(1 - Phi(z)), accurate for |z| <= SHALLOW, and z²."""
    u = np.multiply(z, z, out=scratch(f"squares {name}", z.shape))
    odds = np.multiply(z, _polynomial(LOGIT_PHI_P, u), out=scratch(f"odds {name}", z.shape))
    odds /= _polynomial(LOGIT_PHI_Q, u)
    return np.exp(odds, out=odds), u


def _polynomial(coefficients: tuple[float, ...], u: Floats) -> Floats:
    *lower, next_to_last, last = (np.float32(coefficient) for coefficient in coefficients)
    total = np.multiply(u, last, out=scratch("polynomial", u.shape))
    total += next_to_last
    for coefficient in reversed(lower):
        total *= u
        total += coefficient
    return total


def _deep_log_odds(z_cosine: Floats, z_distance: Floats, w: Doubles) -> Doubles:
    """Return the log-odds from float64 logarithms: slower, and accurate in both tails."""
    cosine, distance = z_cosine.astype(np.float64), z_distance.astype(np.float64)
    with np.errstate(divide="ignore"):  # a weight of 0 has the logarithm -inf, and adds nothing
        log_w, log_rest = np.log(w), np.log1p(-w)
    above = np.logaddexp(log_w + log_ndtr(distance), log_rest + log_ndtr(cosine))
    below = np.logaddexp(log_w + log_ndtr(-distance), log_rest + log_ndtr(-cosine))
    return above - below


@dataclass(frozen=True)
class Blend:
    """How cosine and closeness become comparable over the classes, and are blended."""

    # Normalise (C, n) measures over the classes, in place.
    of_cosine: Callable[[Floats], Floats]
    of_closeness: Callable[[Floats], Floats]
    # From both, normalised, and the weights to scores that rank as s = w level(closeness) + (1 - w) level(cosine).
    combine: Callable[[Floats, Floats, Doubles], Floats]
    level: Callable[[Doubles], Doubles]  # from a normalised measure to its share of s
    scores: Callable[[Floats, Floats, Doubles], Floats]  # `combine` of both measures, normalised; it may change them


#: z-scores, the Gaussian CDF, log-odds.
BY_Z_SCORES = Blend(standardise, standardise, blend_log_odds, ndtr, blend_measures)
#: The cosine as it is, the distance scaled to [0, 1].
BY_RANGE = Blend(
    lambda cosine: cosine,
    scale_to_unit,
    blend_levels,
    lambda level: level,
    lambda cosine, closeness, weights: blend_levels(cosine, scale_to_unit(closeness), weights),
)
