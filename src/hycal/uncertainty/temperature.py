"""Weights of evidence from the likelihood of held-out samples.

The weights w maximise the likelihood of the right answers under softmax(sum_j w_j E_j). The problem is convex and has a
few unknowns, so Newton's method with a line search solves it in about six steps, before `scipy.optimize` would be
imported. One matrix of evidence with one weight gives a temperature, 1/w. A quadratic penalty keeps w finite where
every answer is right, and near its centre where samples are few.

    symbol  shape      meaning (J kinds of evidence, n held-out samples, C classes)
    E       (J, n, C)  evidence; each row has the maximum 0
    own     (n,)       column of the right answer of each sample
    share   (n,)       how much each sample counts, 1 on average
    w       (J,)       weights
    P       (n, C)     softmax(sum_j w_j E_j)
    PE      (J, n, C)  P times E; its sums over classes are the mean evidence of each sample
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hycal.validation import Doubles

_MOST_STEPS = 60
_MOST_HALVINGS = 30
_CONVERGED = 1e-12  # relative gain of a step
_SMALLEST = 1e-3  # least weight, in units of its centre
_SMALLEST_SCALE = 1e-9  # least standard deviation of scores
_WEAK = 1e-3  # nats: a penalty that only keeps a temperature finite


@dataclass(frozen=True, eq=False)
class Penalty:
    """The penalty strength/2 sum_j (w_j/centre_j - 1)^2, in nats."""

    centre: Doubles
    strength: float

    def value(self, w: Doubles) -> float:
        """Return the penalty."""
        return 0.5 * self.strength * float(np.sum((w / self.centre - 1.0) ** 2))

    def slope(self, w: Doubles) -> Doubles:
        """Return its gradient, (J,)."""
        return self.strength * (w / self.centre - 1.0) / self.centre

    def curvature(self) -> Doubles:
        """Return its Hessian, (J, J)."""
        return np.diag(self.strength / self.centre**2)


@dataclass(frozen=True, eq=False)
class _Loss:
    """Minus the log likelihood of the right answers, plus the penalty, as a function of w."""

    E: Doubles
    own: npt.NDArray[np.intp]
    penalty: Penalty
    share: Doubles  # sums over samples are products with it: published temperatures depend on their rounding

    def __call__(self, w: Doubles) -> tuple[float, Doubles]:
        """Return the loss, and P."""
        scores = np.tensordot(w, self.E, axes=1)
        scores -= scores.max(axis=1, keepdims=True)
        P = np.exp(scores)
        totals = P.sum(axis=1)
        P /= totals[:, None]
        right = scores[np.arange(len(self.own)), self.own]
        return float(self.share @ (np.log(totals) - right)) + self.penalty.value(w), P

    def newton_step(self, w: Doubles, P: Doubles) -> tuple[Doubles, float]:
        """Return the inverse Hessian times the gradient at w, and what that step is expected to gain."""
        PE = P * self.E
        means = PE.sum(axis=2)
        right = self.E[:, np.arange(len(self.own)), self.own]
        slope = (means - right) @ self.share + self.penalty.slope(w)
        PE *= self.share[:, None]
        squares = np.einsum("inc,jnc->ij", PE, self.E, optimize=True)
        spread = squares - (means * self.share) @ means.T
        step: Doubles = np.linalg.solve(spread + self.penalty.curvature(), slope)
        return step, 0.5 * float(slope @ step)


def fit_weights(
    evidence: npt.NDArray[np.floating],
    own: npt.NDArray[np.intp],
    penalty: Penalty,
    start: Doubles | None = None,
    share: Doubles | None = None,
) -> Doubles:
    """Return the weights of evidence that make the right answers most likely, each at least 1/1000 of its centre.

    Parameters
    ----------
    evidence : ndarray of shape (J, n, C)
    own : ndarray of shape (n,)
        Column of the right answer of each row.
    penalty : Penalty
        Where weights go without data, and how strongly.
    start : ndarray of shape (J,), optional
        Weights near the result, such as those before a few samples changed; fewer steps lead to the same.
    share : ndarray of shape (n,), optional
        How much each sample counts; by default 1. See `classes_alike`.

    Examples
    --------
    Evidence that is right three times in four gets odds of three.

    >>> evidence = np.array([[[1.0, 0.0]] * 4])
    >>> w = fit_weights(evidence, np.array([0, 0, 0, 1]), Penalty(np.ones(1), 1e-9))
    >>> round(float(np.exp(w[0])), 3)
    3.0
    """
    E = evidence.astype(np.float64)
    E -= E.max(axis=2, keepdims=True)
    loss = _Loss(E, own, penalty, np.ones(len(own)) if share is None else share)
    w = penalty.centre.copy() if start is None else start
    value, P = loss(w)
    for _ in range(_MOST_STEPS):
        step, expected = loss.newton_step(w, P)
        if expected <= _CONVERGED * (1.0 + abs(value)):
            break
        for halvings in range(_MOST_HALVINGS):
            tried = np.maximum(w - step * 0.5**halvings, _SMALLEST * penalty.centre)
            tried_value, tried_P = loss(tried)
            if tried_value <= value:
                break
        gain = value - tried_value
        if gain >= 0.0:
            w, value, P = tried, tried_value, tried_P
        if gain <= _CONVERGED * (1.0 + abs(value)):
            break
    return w


def classes_alike(own: npt.NDArray[np.intp]) -> Doubles:
    """Return the shares, (n,), by which each class that has samples counts as much as any other.

    >>> classes_alike(np.array([0, 0, 0, 1])).round(2)
    array([0.67, 0.67, 0.67, 2.  ])
    """
    shares = 1.0 / np.bincount(own)[own]
    return shares * (len(own) / shares.sum())


def best_temperature(scores: Doubles, own: npt.NDArray[np.intp]) -> float:
    """Return the temperature by which scores, (n, C), must be divided to make the right answers most likely."""
    scale = max(float(np.mean(scores.std(axis=1))), _SMALLEST_SCALE)
    return float(1.0 / fit_weights(scores[None], own, Penalty(np.array([1.0 / scale]), _WEAK))[0])
