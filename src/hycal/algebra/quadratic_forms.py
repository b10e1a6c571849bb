"""Quadratic forms, one for each class: a diagonal and a few signed squares. No d x d matrix is stored or built.

    Q_c(x) = sum_i q_ci (x_i - mu_ci)^2 + sum_j s_cj (f_cj.(x - mu_c))^2

Expanded, a batch of queries meets all classes in products with X^2, X and the stacked rows f.

    symbol        Quadratic  QuadraticBank  shape of either   meaning (C classes, R rows f in all)
    mu_c          centre                    (d,)              centre of a form
    q_c           diagonal   diagonals      (d,), (C, d)      coefficients of the diagonal
    f_cj          factors    factors        (r, d), (R, d)    rows of the squares
    s_cj          signs      signs          (r,), (R,)        sign of each square
    f_cj.mu_c                offsets        (R,)
    -2 q_c mu_c              slopes         (C, d)            coefficients of X
    q_c mu_c^2               bases          (C,)              sum over dimensions
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hycal.parallel.threads import map_rows
from hycal.validation import Doubles


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The form of one class. The table above describes the arrays."""

    centre: Doubles
    diagonal: Doubles
    factors: Doubles
    signs: Doubles

    def at(self, x: Doubles) -> float:
        """Return Q(x)."""
        y = x - self.centre
        return float(self.diagonal @ y**2 + self.signs @ (self.factors @ y) ** 2)


@dataclass(frozen=True, eq=False)
class QuadraticBank:
    """The forms of many classes, packed. The table above describes the arrays.

    Rows f are stored class after class; those of class c begin at `starts[c]`, and every class has at least one.
    """

    diagonals: Doubles
    slopes: Doubles
    bases: Doubles
    factors: Doubles
    offsets: Doubles
    signs: Doubles
    starts: npt.NDArray[np.intp]

    @classmethod
    def of(cls, forms: Sequence[Quadratic]) -> QuadraticBank:
        """Pack `forms`."""
        nothing = np.zeros((1, len(forms[0].centre)))  # a form without squares has one row of zeros
        rows = [form.factors if len(form.factors) else nothing for form in forms]
        signs = [form.signs if len(form.factors) else np.zeros(1) for form in forms]
        diagonals = np.stack([form.diagonal for form in forms])
        centres = np.stack([form.centre for form in forms])
        return cls(
            diagonals=diagonals,
            slopes=-2.0 * diagonals * centres,
            bases=np.einsum("cd,cd,cd->c", diagonals, centres, centres),
            factors=np.concatenate(rows),
            offsets=np.concatenate([F @ form.centre for F, form in zip(rows, forms, strict=True)]),
            signs=np.concatenate(signs),
            starts=np.cumsum([0, *(len(F) for F in rows[:-1])]),
        )

    def __call__(self, X: npt.NDArray[np.floating]) -> Doubles:
        """Return Q_c(x), shape (n, C)."""

        def evaluate(rows: Doubles) -> Doubles:
            squares = rows @ self.factors.T
            squares -= self.offsets
            squares *= squares
            squares *= self.signs
            values = np.add.reduceat(squares, self.starts, axis=1)
            values += rows**2 @ self.diagonals.T
            values += rows @ self.slopes.T
            values += self.bases
            return values

        return map_rows(evaluate, X, width=len(self.bases), numbers_per_row=len(self.factors))
