"""Quadratic forms of many classes of which a few changed: the others are neither computed nor copied.

As in `hycal.algebra.patched_bank`, classes that changed since the bank was packed form a small bank of their own, the
patch. It is packed again at every step; all classes are, once more than sixteen and one in sixteen have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hycal.algebra.quadratic_forms import Quadratic, QuadraticBank
from hycal.state.changes import Changes
from hycal.state.records import ClassRecord, Records
from hycal.validation import Doubles

_ONE_IN = 16  # classes may have changed
_FEW = 16  # classes that always may


@dataclass(frozen=True, eq=False)
class PatchedForms:
    """The forms of all classes."""

    records: Records
    base: QuadraticBank
    # (C,): row of each class in `base`; -1 for the classes of `patch`, which are in the order of `forms`.
    source: npt.NDArray[np.intp]
    forms: Mapping[int, Quadratic]  # form of each class of `patch`, by its column
    patch: QuadraticBank | None

    @property
    def changed(self) -> int:
        """Classes that changed since all were packed."""
        return len(self.forms)

    @cached_property
    def _moved(self) -> bool:
        """Whether classes have other columns than in `base`."""
        return not np.array_equal(self.source, np.arange(len(self.base.bases)))

    @classmethod
    def of(
        cls, records: Records, form: Callable[[ClassRecord], Quadratic], previous: PatchedForms | None
    ) -> PatchedForms:
        """Return the forms of `records`; those of unchanged classes come from `previous`."""
        changes = None if previous is None else Changes.between(previous.records, records)
        if previous is None or changes is None or not changes.few:
            return cls._packed(records, form)
        forms = {column: form(records.ordered[column]) for column in changes.fresh.tolist()}
        source = np.where(changes.source >= 0, previous.source[changes.source], -1)
        for column in np.flatnonzero((source < 0) & (changes.source >= 0)).tolist():
            forms[column] = previous.forms[int(changes.source[column])]
        if len(forms) > max(_FEW, len(source) // _ONE_IN):
            return cls._packed(records, form)
        forms = dict(sorted(forms.items()))
        return cls(records, previous.base, source, forms, QuadraticBank.of(list(forms.values())) if forms else None)

    @classmethod
    def _packed(cls, records: Records, form: Callable[[ClassRecord], Quadratic]) -> PatchedForms:
        bank = QuadraticBank.of([form(record) for record in records.ordered])
        return cls(records, bank, np.arange(len(records.ordered)), {}, None)

    def __call__(self, X: npt.NDArray[np.floating]) -> Doubles:
        """Return Q_c(x), shape (n, C)."""
        found = self.base(X)
        if self._moved:
            found = found[:, self.source]
        if self.patch is not None:
            found[:, list(self.forms)] = self.patch(X)
        return found
