"""The minimum of a function of one number is where SciPy finds it."""

from __future__ import annotations

import math

import pytest
from scipy.optimize import minimize_scalar

from hycal.uncertainty.minimum import smallest

FUNCTIONS = {
    "parabola": lambda x: (x - 1.25) ** 2,
    "kink": lambda x: abs(x + 0.7),
    "flat": lambda x: 1.0,
    "edge": lambda x: x,
    "likelihood": lambda x: 0.5 * x**2 + math.log1p(math.exp(-3.0 * math.exp(-x))),
    "quartic": lambda x: (x - 4.9) ** 4,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_steps_are_those_of_scipy(name: str) -> None:
    asked: list[float] = []

    def noted(x: float) -> float:
        asked.append(x)
        return float(FUNCTIONS[name](x))

    found = smallest(noted, -5.0, 5.0, tolerance=1e-7)
    theirs = minimize_scalar(FUNCTIONS[name], bounds=(-5.0, 5.0), method="bounded", options={"xatol": 1e-7})
    assert found == pytest.approx(theirs.x, abs=1e-7) and len(asked) == theirs.nfev
