"""The smallest value of a function of one number, by Brent's method: parabolas, and golden sections where they fail.

It makes the steps of `scipy.optimize.minimize_scalar(method="bounded")`, whose import takes longer than an answer.

References
----------
R. P. Brent, Algorithms for Minimization without Derivatives, chapter 5, 1973.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_GOLDEN = 0.5 * (3.0 - math.sqrt(5.0))
_PRECISION = math.sqrt(2.2e-16)
_Point = tuple[float, float]  # a number, and the value of the function there


def smallest(function: Callable[[float], float], low: float, high: float, *, tolerance: float) -> float:
    """Return where the function is smallest between `low` and `high`, if it has one minimum there.

    >>> round(smallest(lambda x: (x - 2.0) ** 2, 0.0, 5.0, tolerance=1e-8), 6)
    2.0
    """
    start = low + _GOLDEN * (high - low)
    best = second = third = (start, function(start))
    step = before = 0.0
    while True:
        at, middle = best[0], 0.5 * (low + high)
        least = _PRECISION * abs(at) + tolerance / 3.0
        if abs(at - middle) <= 2.0 * least - 0.5 * (high - low):
            return at
        parabola = _parabola(best, second, third) if abs(before) > least else None
        before, last = step, before
        if parabola is not None and abs(parabola) < abs(0.5 * last) and low < at + parabola < high:
            step = parabola
            if min(at + step - low, high - at - step) < 2.0 * least:
                step = math.copysign(least, middle - at)
        else:
            before = (low if at >= middle else high) - at
            step = _GOLDEN * before
        new = at + math.copysign(max(abs(step), least), step)
        point = (new, function(new))
        if point[1] <= best[1]:
            low, high = (at, high) if new >= at else (low, at)
            best, second, third = point, best, second
        else:
            low, high = (new, high) if new < at else (low, new)
            if point[1] <= second[1] or second[0] == at:
                second, third = point, second
            elif point[1] <= third[1] or third[0] in (at, second[0]):
                third = point


def _parabola(best: _Point, second: _Point, third: _Point) -> float | None:
    """Return the step from the best point to the vertex of the parabola through all three; None if there is none."""
    r = (best[0] - second[0]) * (best[1] - third[1])
    q = (best[0] - third[0]) * (best[1] - second[1])
    p = (best[0] - third[0]) * q - (best[0] - second[0]) * r
    q = 2.0 * (q - r)
    return -p / q if q else None
