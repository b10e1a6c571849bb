"""A large bank with a few changed members: unchanged classes are neither computed nor copied.

A correction changes one or two classes of thousands. A new bank would copy all factors, and fresh memory from the
system costs more than the answer. Here the changed classes form a small bank, the patch. Its results replace those of
the classes that are gone; results of further classes are appended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hycal.algebra.bank import GaussianBank
from hycal.algebra.gaussians import GaussianOptions
from hycal.parallel.threads import scratch
from hycal.state.records import ClassRecord
from hycal.validation import Floats

_LARGE = 2**20  # bytes; a smaller bank is rebuilt
_SHARE = 8  # a bank is rebuilt once more than one class in eight has changed


@dataclass(frozen=True, eq=False)
class PatchedBank:
    """A bank with the interface of `GaussianBank`; scores agree up to the rounding of float32."""

    base: GaussianBank
    patch: GaussianBank
    places: npt.NDArray[np.intp]  # (P,): the result row of each row of `patch`; all other result rows come from `base`
    # As in `GaussianBank`, but not sorted by sample count.
    members: tuple[ClassRecord, ...]
    order: npt.NDArray[np.intp]

    @property
    def options(self) -> GaussianOptions:
        """How the Gaussians are built."""
        return self.base.options

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """K of each class, row by row."""
        counts = np.empty(len(self.members), np.int64)
        counts[: len(self.base.counts)] = self.base.counts
        counts[self.places] = self.patch.counts
        return counts

    @cached_property
    def whole(self) -> GaussianBank:
        """All members in one bank."""
        passed = np.empty(len(self.members), np.intp)
        passed[self.order] = np.arange(len(self.members))
        return GaussianBank.build([self.members[row] for row in passed.tolist()], self.options, previous=self.base)

    @property
    def nbytes(self) -> int:
        """Bytes held for scoring."""
        return self.base.nbytes + self.patch.nbytes

    def subset(self, indices: npt.NDArray[np.intp]) -> GaussianBank:
        """Return the bank of the members that were passed to `build` at `indices`."""
        return self.whole.subset(indices)

    def evaluate(self, queries: Floats) -> tuple[Floats, Floats]:
        """Return cosine and -delta times the squared Mahalanobis distance, as `GaussianBank.evaluate`."""
        n, before, changed = len(queries), len(self.base.members), len(self.places)
        cosines, closeness = scratch("cosines", (len(self.members), n)), scratch("closeness", (len(self.members), n))
        self.base.evaluate_into(cosines[:before], closeness[:before], queries)
        patch = scratch("patch cosines", (changed, n)), scratch("patch closeness", (changed, n))
        self.patch.evaluate_into(*patch, queries)
        cosines[self.places], closeness[self.places] = patch
        return cosines, closeness


Bank = GaussianBank | PatchedBank


def bank_of(members: Sequence[ClassRecord], options: GaussianOptions, previous: Bank | None) -> Bank:
    """Return the bank of `members`. Classes of `previous` are not computed again, and not copied if it is large."""
    base = previous.base if isinstance(previous, PatchedBank) else previous
    if base is None or base.options != options:
        return GaussianBank.build(members, options)
    column_of = {id(member): column for column, member in enumerate(members)}
    order = np.array([column_of.pop(id(member), -1) for member in base.members], dtype=np.intp)
    gone, fresh = np.flatnonzero(order < 0), list(column_of.values())
    few = len(gone) <= len(fresh) <= len(members) // _SHARE
    if not few or not fresh or base.nbytes < _LARGE:
        return GaussianBank.build(members, options, previous=base)
    last = previous.patch if isinstance(previous, PatchedBank) else None
    patch = GaussianBank.build([members[column] for column in fresh], options, previous=last)
    places = np.concatenate([gone, np.arange(len(order), len(members))])
    order = np.concatenate([order, np.full(len(fresh) - len(gone), -1)])
    order[places] = np.array(fresh)[patch.order]
    return PatchedBank(base, patch, places, tuple(members[column] for column in order.tolist()), order)
