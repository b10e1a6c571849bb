"""One state of a model, with everything that was computed from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hycal.state.records import Records

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The records and parameters of a model, and what its method derived from them.

    >>> snapshot = Snapshot(Records({}), {}, value=None)
    >>> snapshot.once("answer", lambda: 42), snapshot.once("answer", lambda: 43)
    (42, 42)
    """

    records: Records
    parameters: Mapping[str, Any]
    value: Any  # what the method's `derive` returned
    computed: dict[str, Any] = field(default_factory=dict)  # other results by name, such as the calibration
    # The newest results of earlier states, by name, with the records that they belong to.
    earlier: Mapping[str, tuple[Records, Any]] = field(default_factory=dict)

    def passed_on(self) -> dict[str, tuple[Records, Any]]:
        """Return what the next snapshot has as `earlier`."""
        return {**self.earlier, **{name: (self.records, found) for name, found in self.computed.items()}}

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """Return what `compute` returns; it is called once for each name."""
        if name not in self.computed:
            self.computed[name] = compute()
        return self.computed[name]


class Memory:
    """Holds the last snapshot outside the attributes of a classifier, so that a question changes none of them."""

    last: Snapshot | None = None
