"""Results of a folder, grouped into the tables they make: one per setting, order and protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hycal.bench import metrics
from hycal.bench.cells import CellResult, read_cell
from hycal.bench.published import PublishedCell, find_published
from hycal.bench.runner import CELLS
from hycal.bench.settings import DEFAULT_ORDER
from hycal.bench.variants import Variant, parse_variant
from hycal.classifiers import METHODS
from hycal.errors import HyCalError

#: Every column of the tables by name, computed from one run.
COLUMNS: Mapping[str, Callable[[CellResult], float]] = {
    "last": lambda run: metrics.last(run.A),
    "average": lambda run: metrics.average(run.A),
    "s_adapt": lambda run: metrics.s_adapt(run.A, run.samples, run.Z),
    "s_last": lambda run: metrics.s_last(run.A, run.samples),
    "s_cde": lambda run: metrics.s_cde(COLUMNS["s_adapt"](run), COLUMNS["s_last"](run)),
    "forgetting": lambda run: metrics.forgetting(metrics.final_forgetting(run.A)),
    "worst_forgetting": lambda run: metrics.forgetting(metrics.worst_forgetting(run.A)),
    "gap": lambda run: metrics.gap(metrics.last_per_domain(run.A)),
    "last:sigma": lambda run: metrics.sigma(metrics.last_per_domain(run.A)),
    "average:sigma": lambda run: metrics.sigma(metrics.average_per_domain(run.A)),
    "transfer": lambda run: metrics.transfer(run.A),
    "average_x_tail": lambda run: metrics.average_x_tail(run.A),
}
LOWER_IS_BETTER = ("forgetting", "worst_forgetting", "gap")
UNRANKED = ("last:sigma", "average:sigma")


@dataclass(frozen=True)
class Value:
    """Mean over seeds with its 95% interval, the number of seeds, and the published number for the same thing."""

    mean: float
    interval: float
    seeds: int
    published: PublishedCell | None = None
    rank: str = ""


@dataclass(frozen=True, eq=False)
class Group:
    """All runs of one setting in one order under one protocol, by method."""

    setting: str
    order: str
    protocol: str
    runs: Mapping[str, tuple[CellResult, ...]]

    @property
    def name(self) -> str:
        """The setting, with its order where that is not the default."""
        return self.setting if self.order == DEFAULT_ORDER else f"{self.setting}@{self.order}"

    @property
    def domains(self) -> tuple[str, ...]:
        """In the order of learning."""
        return next(iter(self.runs.values()))[0].domains

    def value(self, method: str, column: str) -> Value:
        """Return the number for a method: a name in `COLUMNS`, or "last:DOMAIN" or "average:DOMAIN"."""
        numbers = [column_of(run, column) for run in self.runs[method]]
        variant = parse_variant(method)
        plain = Variant(variant.method, overrides=variant.overrides).label
        return Value(
            float(np.mean(numbers)),
            metrics.interval(numbers),
            len(numbers),
            find_published(self.name.replace("+released", ""), plain, column),
        )


def column_of(run: CellResult, column: str) -> float:
    """Return one number of one run."""
    if column in COLUMNS:
        return COLUMNS[column](run)
    part, _, domain = column.partition(":")
    rows = {"last": metrics.last_per_domain, "average": metrics.average_per_domain}
    if part not in rows or domain not in run.domains:
        raise HyCalError(
            f"There is no column {column!r}; expected one of {', '.join(COLUMNS)}, last:DOMAIN, average:DOMAIN."
        )
    return float(rows[part](run.A)[run.domains.index(domain)])


def collect(folder: Path) -> list[Group]:
    """Return the groups of all results in a folder that `hycal bench run` wrote, in a fixed order."""
    paths = sorted((folder / CELLS).rglob("[!.]*.json"))
    if not paths:
        raise HyCalError(f"There are no results in {folder}. Run `hycal bench run SETTING --out {folder}` first.")
    found: dict[tuple[str, str, str], dict[str, list[CellResult]]] = {}
    for run in map(read_cell, paths):
        methods = found.setdefault((run.setting, run.order, run.protocol), {})
        methods.setdefault(run.method, []).append(run)
    return [
        Group(
            *key, {name: tuple(sorted(methods[name], key=lambda run: run.seed)) for name in sorted(methods, key=_place)}
        )
        for key, methods in sorted(found.items(), key=lambda item: (item[0][0], item[0][1] != DEFAULT_ORDER, item[0]))
    ]


def _place(label: str) -> tuple[int, str]:
    """Return where a method stands in a table: as in `METHODS`, variants after the plain one."""
    return list(METHODS).index(parse_variant(label).method), label
