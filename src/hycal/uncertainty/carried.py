"""Results that were fitted to all samples, carried over small changes: the calibration, and what is unknown.

`hycal.state.changes` says how long: a result is fitted anew once one sample in fifty has changed since. Until then it
follows each change by a rule of its own, which costs what the change holds. The calibration, whose held-out scores stay
as they were, is fitted anew once one in 200 has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from hycal.state.changes import ONE_IN, Changes, is_due
from hycal.state.sealed import SealedRecords
from hycal.state.snapshot import Snapshot
from hycal.uncertainty.calibration import Calibration
from hycal.uncertainty.leave_one_out import ScoringMethod
from hycal.uncertainty.unknown import Familiarity

T = TypeVar("T")
_ONE_IN = 200  # samples may have changed since the calibration was fitted


class CalibratedMethod(ScoringMethod, Protocol):
    """What the calibration needs of `hycal.base.IncrementalClassifier`."""

    @property
    def fixed_temperature(self) -> float | None:
        """The method's own temperature, if it has one."""

    def kept_calibration(self, value: Any, table: SealedRecords) -> Calibration:
        """Return the calibration of a sealed model."""


def calibration_of(method: CalibratedMethod, snapshot: Snapshot) -> Calibration:
    """Return what turns the scores of a snapshot into probabilities."""
    records = snapshot.records
    if isinstance(records, SealedRecords):
        return snapshot.once("calibration", lambda: method.kept_calibration(snapshot.value, records))

    def fit() -> Calibration:
        return Calibration.of(method, snapshot.value, records, method.fixed_temperature)

    def after(known: Calibration, changes: Changes) -> Calibration | None:
        return known.after(changes, method, snapshot.value, method.fixed_temperature)

    return carried(snapshot, "calibration", fit, after, one_in=_ONE_IN)


def familiarity_of(snapshot: Snapshot) -> Familiarity:
    """Return the measure of how well queries fit the classes of a snapshot."""
    return carried(snapshot, "familiarity", lambda: Familiarity.of(snapshot.records.seen), Familiarity.after)


@dataclass(frozen=True, eq=False)
class Carried:
    """A result, and how many samples changed since it was fitted."""

    result: Any
    changed: int


def carried(
    snapshot: Snapshot, name: str, fit: Callable[[], T], after: Callable[[T, Changes], T | None], one_in: int = ONE_IN
) -> T:
    """Return the result `name` of a snapshot: that of an earlier one `after` what changed, or a new fit if None.

    It is fitted anew once one in `one_in` samples has changed.
    """

    def compute() -> Carried:
        found = snapshot.earlier.get(name)
        if found is not None:
            changes = Changes.between(found[0], snapshot.records)
            if changes.few:
                changed = found[1].changed + max(changes.samples, len(changes.classes))
                due = is_due(changed, int(snapshot.records.counts.sum()), one_in)
                followed = None if due else after(found[1].result, changes)
                if followed is not None:
                    return Carried(followed, changed)
        return Carried(fit(), 0)

    return snapshot.once(name, compute).result
