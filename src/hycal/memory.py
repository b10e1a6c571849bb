"""The last thing that was derived from a model's records, so that the next answer need not derive it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hycal.state.records import Records

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Derived:
    """What scoring needs, with the records and parameters it was derived from, and what else was asked of these."""

    records: Records
    parameters: Mapping[str, Any]
    value: Any
    asked: dict[str, Any] = field(default_factory=dict)

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """Return what `compute` returns, computing it at the first call of that name."""
        if name not in self.asked:
            self.asked[name] = compute()
        found: T = self.asked[name]
        return found


class Memory:
    """Holds the last `Derived`, so that answering changes nothing of the classifier itself."""

    last: Derived | None = None
