"""The published numbers: every table of the paper as printed, and its known errors.

`published/*.csv` holds every table cell by cell; `published/known-errors.csv` the cells that contradict other printed
numbers or the definitions, with the reason. Columns are named as ours: "last", "average", "s_cde", "last:dtd", ...
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from hycal.errors import HyCalError

TABLES = (
    "two-domain",
    "high-scale",
    "s-cde",
    "fscil",
    "metric-ablation",
    "fusion",
    "random-orders",
    "random-orders-domains",
    "balanced",
    "cross-scale",
    "backbone-and-x-tail",
)


@dataclass(frozen=True)
class PublishedCell:
    """One printed number."""

    # Which table it stands in, and what it is. A setting in another order of domains is "NAME@ORDER", a method with
    # other parameters "NAME[parameter=value]".
    table: str
    setting: str
    method: str
    column: str
    # Mean over the seeds and half width of its 95% interval; NaN where no interval is printed.
    value: float
    interval: float
    error: str = ""  # why the number is wrong or misleading; "" if nothing is known against it


def published(table: str) -> tuple[PublishedCell, ...]:
    """Return the cells of one table of the paper.

    >>> [cell.value for cell in published("fusion") if cell.setting == "high-scale" and cell.column == "last"]
    [63.06, 63.5]
    """
    if table not in TABLES:
        raise HyCalError(f"There is no published table {table!r}; expected one of {', '.join(TABLES)}.")
    return tuple(cell for cell in _cells() if cell.table == table)


def find_published(setting: str, method: str, column: str, table: str = "") -> PublishedCell | None:
    """Return the printed number for a setting, method and column, or None.

    Where several tables print it, that of `table` counts, or the first of `TABLES`.

    >>> cell = find_published("high-scale", "HyCal", "last")
    >>> cell.value, cell.interval
    (63.5, 0.73)
    >>> find_published("high-scale", "HyCal", "forgetting") is None
    True
    """
    found = _by_place().get((setting, method, column), ())
    return next((cell for cell in found if cell.table == table), found[0] if found else None)


def _read(name: str) -> Iterator[dict[str, str]]:
    file = resources.files("hycal.bench") / "published" / f"{name}.csv"
    yield from csv.DictReader(file.read_text(encoding="utf-8").splitlines())


@cache
def _cells() -> tuple[PublishedCell, ...]:
    errors = {(row["table"], row["setting"], row["method"], row["column"]): row["reason"] for row in known_errors()}
    return tuple(_cell(row, errors) for table in TABLES for row in _read(table))


@cache
def _by_place() -> Mapping[tuple[str, str, str], list[PublishedCell]]:
    places: dict[tuple[str, str, str], list[PublishedCell]] = {}
    for cell in _cells():
        places.setdefault((cell.setting, cell.method, cell.column), []).append(cell)
    return places


def known_errors() -> list[dict[str, str]]:
    """Return the cells that are known to be wrong or misleading, each with its reason, as the file lists them."""
    return list(_read("known-errors"))


def _cell(row: Mapping[str, str], errors: Mapping[tuple[str, str, str, str], str]) -> PublishedCell:
    place = (row["table"], row["setting"], row["method"], row["column"])
    return PublishedCell(*place, float(row["value"]), float(row["interval"] or "nan"), errors.get(place, ""))
