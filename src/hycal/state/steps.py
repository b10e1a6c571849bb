"""One learning step: as the caller passes it, and after validation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hycal.validation import Doubles, Floats, Label


@dataclass(frozen=True, eq=False)
class LearningStep:
    """The arguments of one `partial_fit`.

    Examples
    --------
    >>> import numpy as np
    >>> step = LearningStep(np.eye(2), ("cat", "dog"), "pet", {})
    >>> step.rows([1]).y
    ('dog',)
    """

    X: Doubles
    y: tuple[Label, ...]
    domain: str | None
    text: Mapping[Label, Doubles]

    def rows(self, wanted: Sequence[int]) -> LearningStep:
        """Return the step with these rows only, in this order."""
        return replace(self, X=self.X[list(wanted)], y=tuple(self.y[row] for row in wanted))

    def relabelled(self, rename: Callable[[Label], Label]) -> LearningStep:
        """Return the step with every label renamed."""
        y = tuple(rename(label) for label in self.y)
        return replace(self, y=y, text={rename(label): vector for label, vector in self.text.items()})

    def cast(self, dtype: npt.DTypeLike) -> LearningStep:
        """Return the step with embeddings of another precision."""
        return replace(self, X=self.X.astype(dtype))


@dataclass(frozen=True, eq=False)
class Step:
    """A validated learning step: rows by label, one domain (None if the caller named none), text by label."""

    samples: Mapping[Label, Floats]
    domain: str | None
    text: Mapping[Label, Floats]

    @classmethod
    def of(cls, X: Floats, labels: Sequence[Label], domain: str | None, text: Mapping[Label, Floats]) -> Step:
        """Group the rows of X by label.

        The groups are parts of one array. A copy of each would be freed amid the rows that a model keeps, and leave
        as many holes in memory: a model of 100,000 classes took twice the memory of its rows.
        """
        rows: defaultdict[Label, list[int]] = defaultdict(list)
        for row, label in enumerate(labels):
            rows[label].append(row)
        grouped = X[[row for group in rows.values() for row in group]]
        ends = np.cumsum([len(group) for group in rows.values()])
        parts = zip(rows.items(), ends.tolist(), strict=True)
        return cls({label: grouped[end - len(group) : end] for (label, group), end in parts}, domain, text)
