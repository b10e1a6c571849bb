"""What is kept of a class, as an algebra: add, merge and remove are exact.

The state of a class is the multiset of its unit embeddings. While a class has fewer samples than dimensions this is
the smallest exact sufficient state, and everything else (mean, covariance factor, leave-one-out scores) follows from
it. Rows are kept in one canonical order, so statistics reached by different paths are equal to the byte: a class that
forgot an image is the class that never saw it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from hycal.errors import HyCalError
from hycal.validation import Doubles, Floats


@dataclass(frozen=True, eq=False, slots=True)
class ClassStatistics:
    """The embeddings of one class; immutable, so whoever holds one holds it whole.

    Parameters
    ----------
    samples : ndarray of shape (K, d), float32
        Unit rows in canonical order. Build with `of`, which sorts.

    Examples
    --------
    >>> import numpy as np
    >>> first, second = np.eye(3, dtype=np.float32)[:2]
    >>> both = ClassStatistics.of(np.stack([second, first]))
    >>> both.count
    2
    >>> both == ClassStatistics.of(first[None]).add(second[None])
    True
    >>> both.remove(second[None]) == ClassStatistics.of(first[None])
    True
    """

    samples: Floats

    @classmethod
    def of(cls, samples: Floats) -> ClassStatistics:
        """Return the statistics of `samples`, whatever their order."""
        ordered = np.ascontiguousarray(samples, dtype=np.float32)
        if len(ordered) > 1:
            ordered = ordered[np.argsort(_row_keys(ordered), kind="stable")]
        return cls(ordered)

    @property
    def count(self) -> int:
        """K_c, duplicates included."""
        return len(self.samples)

    @property
    def mean(self) -> Doubles:
        """The plain mean, not re-normalised."""
        return self.samples.mean(axis=0, dtype=np.float64)

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self.samples.nbytes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClassStatistics) and np.array_equal(self.samples, other.samples)

    __hash__ = None  # type: ignore[assignment]

    def add(self, samples: Floats) -> ClassStatistics:
        """Return the statistics with `samples` learned as well."""
        return ClassStatistics.of(np.concatenate([self.samples, samples]))

    def merge(self, other: ClassStatistics) -> ClassStatistics:
        """Return the statistics of both multisets together."""
        return self.add(other.samples)

    def remove(self, samples: Floats) -> ClassStatistics:
        """Return the statistics as if `samples` had never been learned.

        Each row takes away one equal row; a row that is not there is an error.
        """
        unwanted = Counter(row.tobytes() for row in samples)
        kept = []
        for index, row in enumerate(self.samples):
            key = row.tobytes()
            if unwanted[key] > 0:
                unwanted[key] -= 1
            else:
                kept.append(index)
        missing = unwanted.total()
        if missing:
            raise HyCalError(
                f"{missing} of {len(samples)} embeddings to remove were never learned in this class; "
                "nothing was removed. Pass the embeddings exactly as they were learned."
            )
        return ClassStatistics(self.samples[kept])


def _row_keys(rows: Floats) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """One opaque, comparable key per row: its bytes."""
    return rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))[:, 0]


def directions(means: Doubles) -> Doubles:
    """Scale means to unit length; a mean of opposite samples has no direction and stays zero."""
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    return np.divide(means, lengths, out=np.zeros_like(means), where=lengths > 1e-12)


def covariance_factors(deviations: Doubles, scale: float, ridge: float) -> Doubles:
    """Return W with R⁻¹ = (I - WᵀW)/ridge for R = scale·S + ridge·I, S the covariance, for a batch of classes.

    No d × d matrix is built while K <= d. With the deviations D and D Dᵀ/(K-1) = Q e Qᵀ the factor is
    W = sqrt(scale/(scale·e + ridge)) Qᵀ D/sqrt(K-1), which divides by no eigenvalue and so needs no rank decision.

    Parameters
    ----------
    deviations : ndarray of shape (B, K, d)
        Samples less the mean of their class: B classes of K samples each.
    scale, ridge : float
        a and delta of the regularised covariance.

    Returns
    -------
    ndarray of shape (B, r, d)
        r = min(K - 1, d): deviations from the mean sum to zero, so one eigenvalue is zero and its row is left out.
        One sample has no spread: S = 0.
    """
    classes, count, width = deviations.shape
    if count == 1:
        return np.empty((classes, 0, width))
    D = deviations / np.sqrt(count - 1)
    if count <= width:
        e, Q = np.linalg.eigh(D @ D.transpose(0, 2, 1))
        e, Q = e[:, 1:], Q[:, :, 1:]
        shrink = np.sqrt(scale / (scale * np.maximum(e, 0.0) + ridge))
        return shrink[:, :, None] * (Q.transpose(0, 2, 1) @ D)
    e, U = np.linalg.eigh(D.transpose(0, 2, 1) @ D)
    e = np.maximum(e, 0.0)
    return np.sqrt(scale * e / (scale * e + ridge))[:, :, None] * U.transpose(0, 2, 1)
