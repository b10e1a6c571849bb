"""A linear discriminant of many samples that follows small changes. `hycal.algebra.discriminant` defines it.

The weights P mu_c of all classes would change with every sample. Here a query is multiplied by P instead, and each
class keeps mu_c'P mu_c. It follows a change of S of rank k in 2 k d operations. A ridge that depends on the number of
samples changes too, by dr: mu_c'P mu_c changes by -dr mu_c'P^2 mu_c + dr^2 mu_c'P^3 mu_c, and an error below |dr/r|^3
of itself. That is 1e-6 at most, since the discriminant is built anew once the ridge has moved by one part in a hundred.

    symbol          field      shape    meaning (C classes, D features)
    mu_c            means      (C, D)
    S               scatter    (D, D)   within-class scatter
    P               precision  (D, D)   (S + r I)^-1
    mu_c'P mu_c     squares    (C,)
    mu_c'P^2 mu_c   slopes     (C,)
    mu_c'P^3 mu_c   curves     (C,)     of the model that was built
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf, dpotri

from hycal.algebra.discriminant import WithinClass
from hycal.algebra.features import Features, Identity
from hycal.algebra.low_rank import LowRank, feature_mean
from hycal.parallel.threads import map_rows
from hycal.state.changes import Changes, is_due
from hycal.state.records import Records
from hycal.validation import Doubles, Floats

_RIDGE_MOVES = 0.01  # of itself, before the discriminant is built anew

#: Ridge and gain of a discriminant, from the number of samples and of classes, and the trace of S.
Regularisation = Callable[[int, int, float], tuple[float, float]]


@dataclass(frozen=True, eq=False)
class SteppedDiscriminant:
    """gain (mu_c'P x - mu_c'P mu_c/2) for every class. The table above describes the arrays."""

    records: Records  # what it was derived from
    features: Features
    means: Doubles
    scatter: Doubles | None  # S is not kept where the ridge never changes
    precision: Doubles
    squares: Doubles
    slopes: Doubles
    curves: Doubles
    ridge: float
    gain: float
    built_ridge: float  # the ridge that it was built with
    changed: int = 0  # samples that changed since it was built; 0 right after

    @classmethod
    def built(
        cls, records: Records, regularisation: Regularisation, features: Features | None = None, *, fixed: bool = False
    ) -> SteppedDiscriminant | None:
        """Build it from all samples; None where they are so few that it would be built anew at every step.

        `features` are those of the embeddings, by default the embeddings themselves; `fixed` says that regularisation
        does not depend on the samples.
        """
        samples, features = int(records.counts.sum()), features or Identity(records.width)
        if is_due(1, samples) or samples < features.size or not records.counts.all():
            return None
        within = WithinClass.of(features(records.stacked().astype(np.float64)), records.counts)
        S = within.deviations.T @ within.deviations
        ridge, gain = regularisation(samples, len(records.counts), float(np.trace(S)))
        P = _inverse(S, ridge)
        weights = within.means @ P
        kept = None if fixed else S
        found = cls(records, features, within.means, kept, P, *_powers(within.means, P), ridge, gain, ridge)
        vars(found)["weights"] = gain * weights
        return found

    def after(self, records: Records, regularisation: Regularisation) -> SteppedDiscriminant | None:
        """Return the discriminant of other records; None if it has to be built anew."""
        changes = Changes.between(self.records, records)
        samples = int(records.counts.sum())
        if not changes.few or is_due(self.changed + changes.samples, samples) or not records.counts.all():
            return None
        change = LowRank.of_scatter(changes.classes, self.means.shape[1], self.features)
        S = None if self.scatter is None else change.added_to(self.scatter)
        ridge, gain = regularisation(samples, len(records.counts), 0.0 if S is None else float(np.trace(S)))
        if abs(ridge - self.built_ridge) > _RIDGE_MOVES * self.built_ridge:
            return None
        P = change.of_inverse(self.precision).of(self.precision) if S is None else _inverse(S, ridge)
        fresh, move = self._fresh_means(changes), ridge - self.ridge
        squares, slopes = self._after(change)
        squares += move * (move * self.curves - slopes)
        slopes -= 2.0 * move * self.curves
        powers = zip((squares, slopes, self.curves), _powers(fresh, P), strict=True)
        squares, slopes, curves = (changes.carried(*pair) for pair in powers)
        return replace(
            self,
            records=records,
            means=changes.carried(self.means, fresh),
            scatter=S,
            precision=P,
            squares=squares,
            slopes=slopes,
            curves=curves,
            ridge=ridge,
            gain=gain,
            changed=self.changed + max(changes.samples, 1),
        )

    def _after(self, change: LowRank) -> tuple[Doubles, Doubles]:
        """Return the squares and slopes once S has changed and the ridge has not."""
        inverse = change.of_inverse(self.precision)
        V, G = inverse.half, inverse.inner  # P becomes P - V'GV
        along = self.means @ V.T
        across = along @ G
        squares = self.squares - np.einsum("ck,ck->c", across, along)
        twice = self.means @ (V @ self.precision).T
        slopes = self.slopes - 2.0 * np.einsum("ck,ck->c", across, twice)
        slopes += np.einsum("ck,ck->c", across @ (V @ V.T), across)
        return squares, slopes

    def _fresh_means(self, changes: Changes) -> Doubles:
        classes = [changes.after.ordered[column].samples for column in changes.fresh.tolist()]
        means = [feature_mean(samples, self.features) for samples in classes]
        return np.array(means).reshape(-1, self.means.shape[1])

    @cached_property
    def weights(self) -> Doubles:
        """gain P mu_c, (C, D)."""
        return self.gain * (self.means @ self.precision)

    @property
    def bias(self) -> Doubles:
        """-gain mu_c'P mu_c/2, (C,)."""
        return -0.5 * self.gain * self.squares

    def __call__(self, X: Floats, columns: npt.NDArray[np.intp] | None = None) -> Doubles:
        """Return (n, C) scores, or those of the classes at `columns`."""
        by_weights = "weights" in vars(self) or len(X) >= len(self.means)  # then the weights are less work
        rows, P = (self.weights, None) if by_weights else (self.means, self.gain * self.precision)
        chosen: Any = slice(None) if columns is None else columns
        rows, bias = rows[chosen], self.bias[chosen]

        def score(part: Doubles) -> Doubles:
            found = self.features(part)
            return (found if P is None else found @ P) @ rows.T + bias

        return map_rows(score, X, width=len(bias), numbers_per_row=self.features.size + len(bias))


def _powers(means: Doubles, P: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    """Return mu'P mu, mu'P^2 mu and mu'P^3 mu of each mean."""
    once = means @ P
    squares, slopes = (np.einsum("cd,cd->c", once, part) for part in (means, once))
    return squares, slopes, np.einsum("cd,cd->c", once @ P, once)


def _inverse(S: Doubles, ridge: float) -> Doubles:
    """Return (S + ridge I)^-1."""
    matrix = np.asfortranarray(S)
    matrix.flat[:: len(S) + 1] += max(ridge, 10.0 * np.finfo(np.float64).eps * float(np.trace(S)))
    factor, failed = dpotrf(matrix, lower=1, overwrite_a=1)
    assert not failed, "the scatter plus a ridge is positive definite"
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    lower = np.tril(inverse)
    return lower + np.tril(inverse, -1).T
