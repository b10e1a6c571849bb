"""What discriminants need of a sealed model: class means, and the scatter of samples within the classes of each domain.

The degrees of freedom are those of the scatters. They are samples less classes until a class is forgotten: its part of
the scatter of its domain stays, and its degrees of freedom with it.
"""

from __future__ import annotations

import numpy as np

from hycal.algebra.discriminant import WithinClass
from hycal.state.sealed import SealedRecords
from hycal.validation import Doubles


def sealed_freedom(table: SealedRecords) -> int:
    """Return the degrees of freedom of all scatters, at least 1."""
    return max(sum(spread.freedom for spread in table.group_spreads), 1)


def sealed_within(table: SealedRecords) -> WithinClass:
    """Return class means, and rows that have the scatter of all centred samples."""
    return WithinClass(
        table.means, np.concatenate([spread.factor for spread in table.group_spreads]).astype(np.float64)
    )


def sealed_covariances(table: SealedRecords, strength: float) -> list[Doubles]:
    """Return Sigma_g of every group, as `hycal.algebra.domain_discriminant.domain_covariances` does."""
    scatters = [spread.scatter for spread in table.group_spreads]
    pooled = np.sum(scatters, axis=0) / sealed_freedom(table)
    freedoms = [spread.freedom for spread in table.group_spreads]
    return [(S + strength * pooled) / (f + strength) for S, f in zip(scatters, freedoms, strict=True)]
