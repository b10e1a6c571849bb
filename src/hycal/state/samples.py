"""The samples of a class, as an algebra: add and remove are exact.

The state of a class is the multiset of its unit embeddings. While a class has fewer samples than dimensions, this is
the smallest exact sufficient state: mean, covariance factor and leave-one-out scores follow from it. Rows are kept in
one canonical order, so equal multisets are equal to the byte: a class that forgot an image is the class that never saw
it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from hycal.errors import HyCalError
from hycal.validation import Doubles, Floats


@dataclass(frozen=True, eq=False, slots=True)
class ClassSamples:
    """The embeddings of one class; immutable, so concurrent readers need no lock.

    `rows` are unit float32 rows (K, d) in canonical order. Build with `of`, which sorts.

    >>> import numpy as np
    >>> first, second = np.eye(3, dtype=np.float32)[:2]
    >>> both = ClassSamples.of(np.stack([second, first]))
    >>> both.count
    2
    >>> both == ClassSamples.of(first[None]).add(second[None])
    True
    >>> both.remove(second[None]) == ClassSamples.of(first[None])
    True
    """

    rows: Floats

    @classmethod
    def of(cls, samples: Floats) -> ClassSamples:
        """Sort the rows of `samples`; the result shares no memory with them."""
        ordered = np.ascontiguousarray(samples, dtype=np.float32)
        order = np.argsort(row_keys(ordered), kind="stable") if len(ordered) > 1 else np.arange(len(ordered))
        return cls(ordered[order])

    @property
    def count(self) -> int:
        """K_c, duplicates included."""
        return len(self.rows)

    @property
    def mean(self) -> Doubles:
        """The plain mean, not scaled to unit length."""
        return self.rows.mean(axis=0, dtype=np.float64)

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self.rows.nbytes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClassSamples) and np.array_equal(self.rows, other.rows)

    __hash__ = None  # type: ignore[assignment]

    def add(self, samples: Floats) -> ClassSamples:
        """Return the samples with `samples` learned as well."""
        return ClassSamples.of(np.concatenate([self.rows, samples]))

    def remove(self, samples: Floats) -> ClassSamples:
        """Return the samples as if `samples` had never been learned.

        Each row removes one equal row; a row without an equal one is an error.
        """
        kept = rows_beyond(self.rows, samples)
        missing = len(kept) + len(samples) - len(self.rows)
        if missing:
            raise HyCalError(
                f"{missing} of {len(samples)} embeddings to remove were never learned in this class; "
                "nothing was removed. Pass the embeddings exactly as they were learned."
            )
        return ClassSamples(kept)


def rows_beyond(rows: Floats, others: Floats) -> Floats:
    """Return the rows that are left when each of `others` takes one equal row away, if there is one."""
    unwanted, kept = Counter(row.tobytes() for row in others), []
    for index, row in enumerate(rows):
        key = row.tobytes()
        if unwanted[key] > 0:
            unwanted[key] -= 1
        else:
            kept.append(index)
    return rows[kept]


def row_keys(rows: Floats) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """Return one comparable key for each row: its bytes."""
    return rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))[:, 0]
