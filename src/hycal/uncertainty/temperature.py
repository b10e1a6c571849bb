"""Weights of evidence by maximum likelihood of held-out answers: a convex problem in a few numbers, by Newton's method.

With E_1, E_2, ... matrices of evidence (rows: held-out samples; columns: candidates), the weights w maximise the
likelihood of the right answers under softmax(w_1 E_1 + w_2 E_2 + ...). One matrix and one weight is a temperature.
A pull towards a centre keeps weights finite where every answer is right, and near it where there are few rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hycal.validation import Doubles

_MOST_STEPS = 60
_CONVERGED = 1e-12  # of the objective per step, relative
_SMALLEST = 1e-3  # of its centre: a weight stays positive
_SMALLEST_SCALE = 1e-9  # of scores that are all alike
_WEAK = 1e-3  # nats: a pull that only keeps a temperature finite


@dataclass(frozen=True, eq=False)
class Pull:
    """strength/2 sum_j (w_j / centre_j - 1)^2, in nats."""

    centre: Doubles
    strength: float

    def value(self, w: Doubles) -> float:
        """Return the penalty."""
        return 0.5 * self.strength * float(np.sum((w / self.centre - 1.0) ** 2))

    def slope(self, w: Doubles) -> Doubles:
        """Return its gradient."""
        slope: Doubles = self.strength * (w / self.centre - 1.0) / self.centre
        return slope

    def curvature(self) -> Doubles:
        """Return its Hessian."""
        return np.diag(self.strength / self.centre**2)


def best_temperature(scores: Doubles, own: npt.NDArray[np.intp]) -> float:
    """Return what scores, (n, C), are to be divided by so that their softmax makes the right answers most likely."""
    scale = max(float(np.mean(scores.std(axis=1))), _SMALLEST_SCALE)
    return float(1.0 / fit_weights(scores[None], own, Pull(np.array([1.0 / scale]), _WEAK))[0])


def fit_weights(
    evidence: npt.NDArray[np.floating], own: npt.NDArray[np.intp], pull: Pull, *, shares: Doubles | None = None
) -> Doubles:
    """Return the weights of evidence of the most likely right answers, each at least a thousandth of its centre.

    Parameters
    ----------
    evidence : ndarray of shape (J, n, C)
    own : ndarray of shape (n,)
        Column of the right answer of each row.
    pull : Pull
        Where weights go without data, and how strongly.
    shares : ndarray of shape (n,), optional
        How much each row counts; 1 by default.

    Examples
    --------
    Evidence that is right three times in four deserves odds of three.

    >>> evidence = np.array([[[1.0, 0.0]] * 4])
    >>> w = fit_weights(evidence, np.array([0, 0, 0, 1]), Pull(np.ones(1), 1e-9))
    >>> round(float(np.exp(w[0])), 3)
    3.0
    """
    E = evidence.astype(np.float64)
    E -= E.max(axis=2, keepdims=True)
    each, w = np.arange(len(own)), pull.centre.copy()
    shares = np.ones(len(own)) if shares is None else shares
    right = E[:, each, own]

    def loss(w: Doubles) -> tuple[float, Doubles]:
        scores = np.tensordot(w, E, axes=1)
        scores -= scores.max(axis=1, keepdims=True)
        P = np.exp(scores)
        total = P.sum(axis=1)
        P /= total[:, None]
        return float(shares @ (np.log(total) - scores[each, own])) + pull.value(w), P

    value, P = loss(w)
    for _ in range(_MOST_STEPS):
        PE = P * E
        mean = PE.sum(axis=2)
        slope = (mean - right) @ shares + pull.slope(w)
        second = np.einsum("inc,jnc,n->ij", PE, E, shares, optimize=True)
        step = np.linalg.solve(second - (mean * shares) @ mean.T + pull.curvature(), slope)
        for halvings in range(30):
            tried = np.maximum(w - step * 0.5**halvings, _SMALLEST * pull.centre)
            tried_value, tried_P = loss(tried)
            if tried_value <= value:
                break
        gained, moved = value - tried_value, np.abs(tried - w).max()
        if gained < 0 or moved == 0:
            break
        w, value, P = tried, tried_value, tried_P
        if gained <= _CONVERGED * (1.0 + abs(value)):
            break
    return w
