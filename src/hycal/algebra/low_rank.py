"""Changes of low rank: of the scatter within classes, and of the inverse of a matrix to which such a change is added.

H' = H + U'sU        H'^-1 = H^-1 - H^-1 U'(s + U H^-1 U')^-1 U H^-1

symbol   shape    meaning
U        (k, d)   rows that are added or subtracted
s        (k, k)   diagonal of their signs, 1 and -1
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from hycal.state.changes import ChangedClass
from hycal.state.samples import ClassSamples
from hycal.validation import Doubles


@dataclass(frozen=True, eq=False)
class LowRank:
    """U and the signs of its rows, (k,)."""

    rows: Doubles
    signs: Doubles

    @classmethod
    def of_scatter(
        cls, classes: Iterable[ChangedClass], width: int, features: Callable[[Doubles], Doubles] = lambda rows: rows
    ) -> LowRank:
        """Return the change of the scatter of samples around the means of their classes.

        With m the old mean of a class and K' samples of the new mean m', it is the sum of (x - m)(x - m)' over added
        samples, less that over removed ones, less K'(m' - m)(m' - m)'. Samples are mapped by `features` to `width`
        numbers.
        """
        rows: list[Doubles] = [np.empty((0, width))]
        signs: list[Doubles] = [np.empty(0)]
        for one in classes:
            old = None if one.old is None or not one.old.count else one.old.samples
            new = None if one.new is None or not one.new.count else one.new.samples
            centre = old or new
            if centre is None:
                continue
            m = feature_mean(centre, features)
            rows += [features(part.astype(np.float64)) - m for part in (one.added, one.removed)]
            signs += [np.ones(len(one.added)), -np.ones(len(one.removed))]
            if old is not None and new is not None and one.samples:
                rows.append(np.sqrt(new.count) * (feature_mean(new, features) - m)[None])
                signs.append(-np.ones(1))
        return cls(np.concatenate(rows), np.concatenate(signs))

    def added_to(self, H: Doubles) -> Doubles:
        """Return H + U'sU."""
        return H + (self.rows.T * self.signs) @ self.rows

    def of_inverse(self, inverse: Doubles) -> InverseChange:
        """Return the change of H^-1, given as `inverse`."""
        half = self.rows @ inverse
        inner = half @ self.rows.T
        inner.flat[:: len(inner) + 1] += self.signs
        solved: Doubles = np.linalg.inv(inner).astype(np.float64)
        return InverseChange(half, solved)


def feature_mean(samples: ClassSamples, features: Callable[[Doubles], Doubles]) -> Doubles:
    """Return the mean of the features of the samples of a class."""
    return features(samples.rows.astype(np.float64)).mean(axis=0)


@dataclass(frozen=True, eq=False)
class InverseChange:
    """H'^-1 = H^-1 - V'GV with V = U H^-1, (k, d), and G, (k, k)."""

    half: Doubles
    inner: Doubles

    def of(self, inverse: Doubles) -> Doubles:
        """Return H'^-1."""
        return inverse - self.half.T @ (self.inner @ self.half)
