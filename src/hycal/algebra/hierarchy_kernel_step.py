"""Kernel evidence after a small change of a domain: the regression is not solved again.

Every sample that was added since is one more observation, and every sample that was removed is one of the opposite
weight: its ridge is negative, so that it cancels. With U the rows of both,

    f'(x) = f(x) + c(x, U) (c(U, U) + R)^-1 (Y_U - f(U))        c(x, y) = k(x, y) - k(x)'A^-1 k(y)

is the regression on what is there now. A sample that is left out has f'_i = y_i - a_i/b_i, with a the coefficients and
b the diagonal of the inverse of the system of all N_g + m rows. The variance t and the ridges of samples stay as they
were fitted; a new sample has the ridge of its class, or the mean one where the class is new.
`hycal.algebra.hierarchy_kernel` has the rest.

    symbol     field     shape      meaning (m rows since the fit, C_g classes now)
    U          rows      (m, d)
    R          ridges    (m,)       negative for samples that were removed
    Y_U        own       (m,)       place of the class of each row, -1 if it is gone
    A^-1 k(U)  solved    (N_g, m)
               source    (C_g,)     place of each class in the fit, -1 if it is new
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hycal.algebra.hierarchy_kernel import RIDGE, KernelRegression, class_ridges
from hycal.algebra.hierarchy_step import DomainChange
from hycal.validation import Doubles, Floats

_SIGNS = np.array([1.0, -1.0], np.float32)
_ONE_IN = 32  # rows may have changed before the regression is solved again


@dataclass(frozen=True, eq=False)
class SteppedKernel:
    """The regression of one domain after small changes. The table above describes the arrays."""

    base: KernelRegression
    rows: Floats
    ridges: Floats
    own: npt.NDArray[np.intp]
    solved: Floats
    source: npt.NDArray[np.intp]

    @classmethod
    def of(cls, base: KernelRegression | SteppedKernel) -> SteppedKernel:
        """Return the regression as it is."""
        if isinstance(base, SteppedKernel):
            return base
        none, classes = base.samples[:0], np.arange(base.coefficients.shape[1])
        return cls(base, none, none[:, 0], np.empty(0, np.intp), base.half[:, :0], classes)

    @property
    def worn(self) -> bool:
        """Whether so much has changed that solving again is better."""
        return _ONE_IN * len(self.rows) > len(self.base.samples)

    def after(self, change: DomainChange) -> SteppedKernel:
        """Return the regression after a change of the domain."""
        was = change.was
        now_of = np.full(len(self.source) + 1, -1)  # -1, the last, is the place of classes that are gone
        now_of[was[was >= 0]] = np.flatnonzero(was >= 0)
        rows, ridges, own = [self.rows], [self.ridges], [now_of[self.own]]
        for one, place in zip(change.classes, change.places, strict=True):
            now = -1 if one.column is None else int(np.searchsorted(change.columns, one.column))
            rows += [one.added, one.removed]
            own.append(np.full(one.samples, now))
            ridge = self._ridges[self.source[place] if place >= 0 else -1]
            ridges.append(ridge * np.repeat(_SIGNS, [len(one.added), len(one.removed)]))
        fresh, half = np.concatenate([self.rows[:0], *rows[1:]]), self.base.half
        solved = half.T @ (half @ self.base.kernel(fresh).T)
        return replace(
            self,
            rows=np.concatenate(rows),
            ridges=np.concatenate(ridges),
            own=np.concatenate(own),
            solved=np.concatenate([self.solved, solved], axis=1),
            source=np.where(was >= 0, self.source[was], -1),
        )

    @property
    def _ridges(self) -> Floats:
        """The ridge of a sample of each class of the fit, and of a new class at last."""
        return np.append(class_ridges(np.bincount(self.base.own)), np.float32(RIDGE))

    @cached_property
    def _inner(self) -> Doubles:
        """Return (c(U, U) + R)^-1, (m, m)."""
        inner = (self.base.between(self.rows, self.rows) - self.base.kernel(self.rows) @ self.solved).astype(np.float64)
        inner.flat[:: len(inner) + 1] += self.ridges
        return np.linalg.inv(inner).astype(np.float64)

    @cached_property
    def _coefficients(self) -> Floats:
        """Return (c(U, U) + R)^-1 (Y_U - f(U)), (m, C_g)."""
        targets = np.zeros((len(self.rows), len(self.source)))
        known = np.flatnonzero(self.own >= 0)
        targets[known, self.own[known]] = 1.0
        return (self._inner @ (targets - self._before(self.base.kernel(self.rows)))).astype(np.float32)

    def without_each(self, X: Floats, own: npt.NDArray[np.intp]) -> Floats:
        """Return f' of learned samples of the classes `own`, each without itself, (n, C_g)."""
        fitted = self.base.positions(X, self.source[own])
        a = np.where(self.source >= 0, self.base.coefficients[fitted][:, self.source], 0.0).astype(np.float64)
        solved = self.solved[fitted].astype(np.float64)
        a -= solved @ self._coefficients
        b = self.base.diagonal[fitted] + np.einsum("nm,nm->n", solved @ self._inner, solved)
        for position in np.flatnonzero(fitted < 0).tolist():
            same = (self.own == own[position]) & (self.ridges > 0.0) & np.all(self.rows == X[position], axis=1)
            later = int(np.flatnonzero(same)[0])
            a[position], b[position] = self._coefficients[later], self._inner[later, later]
        f: Floats = (-a / b[:, None]).astype(np.float32)
        f[np.arange(len(X)), own] += 1.0
        return f

    def _before(self, kernel: Floats) -> Floats:
        """Return f of the fit for the classes of now, (n, C_g), from k."""
        f: Floats = (kernel @ self.base.coefficients)[:, self.source]
        f[:, self.source < 0] = 0.0
        return f

    def __call__(self, X: Floats) -> Floats:
        """Return f' of queries, (n, C_g)."""
        kernel = self.base.kernel(X)
        change = self.base.between(X, self.rows) - kernel @ self.solved
        return (self._before(kernel) + change @ self._coefficients).astype(np.float32)
