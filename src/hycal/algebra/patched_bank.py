"""A large bank with some members changed: what did not change stays where it is, and is not even copied.

A correction touches one class or two of thousands. A new bank for it would be another copy of all factors, and memory
fresh from the system costs more than the answer. Here the changed classes form a small bank of their own, whose results
are written over those of the classes that are gone, and behind all others where there are more of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hycal.algebra.bank import GaussianBank, Shape
from hycal.parallel.threads import scratch
from hycal.state.records import ClassRecord
from hycal.validation import Floats

_LARGE = 2**20  # bytes of a bank that is worth it
_SHARE = 8  # a bank is built anew once more than one class of so many has changed


@dataclass(frozen=True, eq=False)
class PatchedBank:
    """What `GaussianBank` is of the same members; scores agree to the rounding of float32.

    Attributes
    ----------
    base, patch : GaussianBank
    places : ndarray of shape (P,)
        The row in which each row of `patch` stands in every result; all other rows are those of `base`.
    members, order
        As those of `GaussianBank`, but in no order of their counts.
    """

    base: GaussianBank
    patch: GaussianBank
    places: npt.NDArray[np.intp]
    members: tuple[ClassRecord, ...]
    order: npt.NDArray[np.intp]

    @property
    def shape(self) -> Shape:
        """How the Gaussians are built."""
        return self.base.shape

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """Samples of each class, in `order`."""
        counts = np.empty(len(self.members), np.int64)
        counts[: len(self.base.counts)] = self.base.counts
        counts[self.places] = self.patch.counts
        return counts

    @cached_property
    def whole(self) -> GaussianBank:
        """All members in one bank."""
        passed = np.empty(len(self.members), np.intp)
        passed[self.order] = np.arange(len(self.members))
        return GaussianBank.build([self.members[row] for row in passed.tolist()], self.shape, previous=self.base)

    @property
    def nbytes(self) -> int:
        """Bytes held for scoring."""
        return self.base.nbytes + self.patch.nbytes

    def subset(self, indices: npt.NDArray[np.intp]) -> GaussianBank:
        """Return the bank of the members that were passed to `build` at `indices`."""
        return self.whole.subset(indices)

    def evaluate(self, queries: Floats) -> tuple[Floats, Floats]:
        """Return cosine and -delta times the squared Mahalanobis distance, as `GaussianBank.evaluate`."""
        before, changed, all_ = ((len(part), len(queries)) for part in (self.base.members, self.places, self.members))
        cosines, closeness = scratch("cosines", all_), scratch("closeness", all_)
        self.base.evaluate_into(cosines[: before[0]], closeness[: before[0]], queries)
        patch = scratch("patch cosines", changed), scratch("patch closeness", changed)
        self.patch.evaluate_into(*patch, queries)
        cosines[self.places], closeness[self.places] = patch
        return cosines, closeness


Bank = GaussianBank | PatchedBank


def bank_of(members: Sequence[ClassRecord], shape: Shape, previous: Bank | None) -> Bank:
    """Return the bank of `members`; what `previous` has of it is not computed again, nor copied where it is large."""
    base = previous.base if isinstance(previous, PatchedBank) else previous
    if base is None or base.shape != shape:
        return GaussianBank.build(members, shape)
    column_of = {id(member): column for column, member in enumerate(members)}
    order = np.array([column_of.pop(id(member), -1) for member in base.members], dtype=np.intp)
    gone, fresh = np.flatnonzero(order < 0), list(column_of.values())
    few = len(gone) <= len(fresh) <= len(members) // _SHARE
    if not few or not fresh or base.nbytes < _LARGE:
        return GaussianBank.build(members, shape, previous=base)
    last = previous.patch if isinstance(previous, PatchedBank) else None
    patch = GaussianBank.build([members[column] for column in fresh], shape, previous=last)
    places = np.concatenate([gone, np.arange(len(order), len(members))])
    order = np.concatenate([order, np.full(len(fresh) - len(gone), -1)])
    order[places] = np.array(fresh)[patch.order]
    return PatchedBank(base, patch, places, tuple(members[column] for column in order.tolist()), order)
