"""The last thing that was derived from a model's records, so that the next answer need not derive it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hycal.records import Records


@dataclass(frozen=True, eq=False)
class Derived:
    """What scoring needs, with the records and parameters it was derived from."""

    records: Records
    parameters: Mapping[str, Any]
    value: Any


class Memory:
    """Holds the last `Derived`, so that answering changes nothing of the classifier itself."""

    last: Derived | None = None
