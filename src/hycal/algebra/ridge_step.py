"""A ridge regression of many samples that follows small changes: it is not solved again.

Every sample that was added since is one more observation, and every sample that was removed is one of the opposite
weight, which cancels it. With U the rows of both, s the diagonal of their signs, and A the matrix that was factorised,

    f'(x) = f(x) + c(x, U) (c(U, U) + r s)^-1 (Y_U - f(U))

is the regression on what is there now, with c(x, y)/r = h(x)'A^-1 h(y) on features, and on a kernel c(x, y) = k(x, y) -
k(x)'A^-1 k(y). `hycal.algebra.ridge` has both forms. A step costs one solution with the factor of A and one product
with the weights of all classes; the regression is solved again after 256 rows, or one sample in fifty.

    symbol   field    shape       meaning (m rows since, M features or stored samples, C classes)
    U        rows     (m, d)
    s        signs    (m,)
    Y_U      own      (m,)        column of the class of each row, -1 if the class is gone
    A^-1 h   solved   (M, m)      of the rows, likewise A^-1 k
             source   (C,)        row of each class in the weights, -1 if its weights are 0
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from hycal.algebra.features import Features, Kernel, LinearHead, Relu, one_hot
from hycal.algebra.ridge import gram_and_moments, ridge_weights, with_ridge
from hycal.parallel.threads import map_rows
from hycal.state.changes import Changes, is_due
from hycal.state.records import Records
from hycal.validation import Doubles, Floats

_MOST_ROWS = 256
_MOST_BYTES = 2**31  # of a factor that is kept


@dataclass(frozen=True, eq=False)
class Factorised:
    """A, factorised: (H'H + r I) or (K + r I); `matrix` is the lower triangle in Fortran order, and is overwritten."""

    factor: Doubles
    ridge: float

    @classmethod
    def of(cls, matrix: Doubles, ridge: float) -> Factorised:
        """Factorise `matrix` plus the ridge."""
        factor, _ = cho_factor(with_ridge(matrix, ridge), lower=True, overwrite_a=True, check_finite=False)
        return cls(factor, ridge)

    def solve(self, right: Doubles) -> Doubles:
        """Return A^-1 right."""
        return cho_solve((self.factor, True), right, check_finite=False)


@dataclass(frozen=True, eq=False)
class SteppedRegression:
    """A regression after small changes. The table above describes the arrays."""

    records: Records  # what it was derived from
    head: LinearHead  # the regression that was solved; its features are random ones, or a kernel
    factorised: Factorised
    rows: Floats
    signs: Doubles
    own: npt.NDArray[np.intp]
    solved: Doubles
    source: npt.NDArray[np.intp]
    gain: float = 1.0  # factor of the answers
    names: LinearHead | None = None  # another classifier, whose answers are subtracted from the targets
    changed: int = 0

    @classmethod
    def solved_for(
        cls,
        records: Records,
        features: Features,
        matrix: Doubles,
        moments: Doubles,
        ridge: float,
        *,
        gain: float = 1.0,
        names: LinearHead | None = None,
    ) -> SteppedRegression:
        """Solve (`matrix` + ridge I) W' = `moments`; the matrix is overwritten. The rest as above."""
        factorised = Factorised.of(matrix, ridge)
        head = LinearHead(features, factorised.solve(moments).T, np.zeros(moments.shape[1]))
        none, solved = np.empty((0, records.width), np.float32), np.empty((features.size, 0))
        own, source = np.empty(0, np.intp), np.arange(len(head.bias))
        return cls(records, head, factorised, none, np.empty(0), own, solved, source, gain, names)

    @property
    def features(self) -> Features:
        """Those of the regression that was solved."""
        return self.head.features

    def after(self, records: Records, names: LinearHead | None = None) -> SteppedRegression | None:
        """Return the regression on other records, with `names` of them; None if it has to be solved again."""
        changes = Changes.between(self.records, records)
        if not changes.few or is_due(self.changed + changes.samples, int(records.counts.sum())):
            return None
        if len(self.rows) + changes.samples > _MOST_ROWS:
            return None
        was, now = changes.moves
        rows, signs, own = [self.rows], [self.signs], [now[self.own]]
        for one in changes.classes:
            rows += [one.added, one.removed]
            signs += [np.ones(len(one.added)), -np.ones(len(one.removed))]
            own.append(np.full(one.samples, -1 if one.column is None else one.column))
        fresh = np.concatenate([self.rows[:0], *rows[1:]]).astype(np.float64)
        head, source = self._with_names(names, was)
        return replace(
            self,
            records=records,
            head=head,
            names=names,
            rows=np.concatenate(rows),
            signs=np.concatenate(signs),
            own=np.concatenate(own),
            solved=np.concatenate([self.solved, self.factorised.solve(self.head.features(fresh).T)], axis=1),
            source=source,
            changed=self.changed + max(changes.samples, 1),
        )

    def _with_names(
        self, names: LinearHead | None, was: npt.NDArray[np.intp]
    ) -> tuple[LinearHead, npt.NDArray[np.intp]]:
        """Return the regression that was solved, with weights of new classes, and the row of each class in them.

        Samples that were there before have the target 0 for a new class, less what `names` says.
        """
        source, new = np.where(was >= 0, self.source[was], -1), np.flatnonzero(was < 0)
        if names is None or not len(new):
            return self.head, source
        assert isinstance(self.head.features, Kernel)
        weights = self.factorised.solve(-names(self.head.features.samples.astype(np.float32), new)).T
        source[new] = len(self.head.bias) + np.arange(len(new))
        both = np.concatenate([self.head.weights, weights])
        return replace(self.head, weights=both, bias=np.zeros(len(both))), source

    def __call__(self, X: Floats, columns: npt.NDArray[np.intp] | None = None) -> Doubles:
        """Return f', (n, C), or of the classes at `columns`."""
        chosen = np.arange(len(self.source)) if columns is None else columns
        coefficients = self._coefficients[:, chosen]

        def score(part: Doubles) -> Doubles:
            features = self.head.features(part)
            return self.gain * (self._solved(features, chosen) + self._across(part, features) @ coefficients)

        return map_rows(score, X, width=len(chosen), numbers_per_row=self.head.features.size + len(chosen))

    def _solved(self, features: Doubles, chosen: npt.NDArray[np.intp]) -> Doubles:
        """Return what the regression that was solved says of the classes at `chosen`."""
        source, found = self.source[chosen], features @ self.head.weights.T
        if not np.array_equal(source, np.arange(found.shape[1])):
            found = found[:, source]
            found[:, source < 0] = 0.0
        return found

    def _across(self, X: Doubles, features: Doubles) -> Doubles:
        """Return c(x, U), on features divided by r, (n, m)."""
        along: Doubles = features @ self.solved
        kernel = self.head.features
        if not isinstance(kernel, Kernel):
            return along
        direct = replace(kernel, samples=self.rows.astype(np.float64))(X)
        return direct - along

    @cached_property
    def _coefficients(self) -> Doubles:
        """(c(U, U) + r s)^-1 (Y_U - f(U)), (m, C)."""
        rows = self.rows.astype(np.float64)
        features, everyone = self.head.features(rows), np.arange(len(self.source))
        inner = self._across(rows, features)
        ridge = self.factorised.ridge if isinstance(self.head.features, Kernel) else 1.0
        inner.flat[:: len(inner) + 1] += ridge * self.signs
        targets = np.zeros((len(rows), len(everyone)))
        known = np.flatnonzero(self.own >= 0)
        targets[known, self.own[known]] = 1.0
        if self.names is not None:
            targets -= self.names(self.rows)
        found = np.linalg.solve(inner, targets - self._solved(features, everyone))
        return found.astype(np.float64, copy=False)


def can_follow(records: Records, size: int) -> bool:
    """Whether a regression of `size` features or stored samples follows changes: its factor has to fit in memory."""
    samples = int(records.counts.sum())
    return not is_due(1, samples) and samples >= size and 8 * size**2 <= _MOST_BYTES


def regression_on_features(features: Relu, records: Records, ridge: float) -> LinearHead | SteppedRegression:
    """Return the ridge regression of the one-hot labels on random features, one that follows changes if possible."""
    X, Y = records.stacked(), one_hot(records.counts)
    if not can_follow(records, features.size):
        weights = ridge_weights(features, X, Y, ridge)
        return LinearHead(features, weights, np.zeros(len(weights)))
    return SteppedRegression.solved_for(records, features, *gram_and_moments(features, X, Y), ridge)


def followed(previous: object, records: Records, names: LinearHead | None = None) -> SteppedRegression | None:
    """Return what follows for `records` from a `previous` regression; None if it has to be solved."""
    return previous.after(records, names) if isinstance(previous, SteppedRegression) else None
