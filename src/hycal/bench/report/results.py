"""Results of a folder: runs grouped by setting, order and protocol, figures, and measured efficiency.

Each file is read once. Runs that share a table must share their inputs: a folder may hold older runs, of other
embeddings or shots. `collect` refuses such a folder and names the files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hycal.bench import metrics
from hycal.bench.cells import CellResult, read_cell
from hycal.bench.efficiency import Measured, read_efficiency
from hycal.bench.figure_data import FigureData, read_figure_data
from hycal.bench.methods import RANDOM_STATE, parse_variant, shown_apart
from hycal.bench.practice import PracticeRun, read_practice
from hycal.bench.published import PublishedCell, find_published
from hycal.bench.runner import CELLS, FIGURES
from hycal.bench.settings import DEFAULT_ORDER
from hycal.classifiers import METHODS
from hycal.errors import HyCalError
from hycal.validation import Doubles

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
    "ece": lambda run: run.calibration_error,
    "last:sigma": lambda run: metrics.sigma(metrics.last_per_domain(run.A)),
    "average:sigma": lambda run: metrics.sigma(metrics.average_per_domain(run.A)),
    "transfer": lambda run: metrics.transfer(run.A),
    "average_x_tail": lambda run: metrics.average_x_tail(run.A),
    "base": lambda run: metrics.base_accuracy(run.A),
    "novel": lambda run: metrics.novel_accuracy(run.A, run.asked),
    "harmonic": lambda run: metrics.harmonic_mean(COLUMNS["base"](run), COLUMNS["novel"](run)),
    "backward": lambda run: metrics.backward_transfer(run.A),
    "forward": lambda run: metrics.forward_transfer(run.A, run.alone),
}
LOWER_IS_BETTER = ("forgetting", "worst_forgetting", "gap", "ece")
UNRANKED = ("last:sigma", "average:sigma", "lead")

_TABLE = ("setting", "order", "protocol")
#: Entries of a manifest that must be equal in all runs of a table, or in those of one seed or one method of it.
#: The hash of the embeddings covers their text; the name of the setting covers its sampling. The random state of a
#: method is left out of its parameters here: the seed of the run decides it.
_SAME = {
    "domains": _TABLE,
    "embeddings": _TABLE,
    "short": _TABLE,
    "sample_list": (*_TABLE, "seed"),
    "parameters": (*_TABLE, "method"),
}
_NAMED = 5  # files that a message lists


@dataclass(frozen=True)
class Value:
    """Mean over seeds with its 95% interval, the number of seeds, and the published number of the same cell.

    `digits` are written behind the point. Where there is a `text`, it is written in place of the number.
    """

    mean: float
    interval: float
    seeds: int
    published: PublishedCell | None = None
    rank: str = ""
    digits: int = 2
    text: str = ""


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

    @property
    def methods(self) -> list[str]:
        """Methods in the tables of the setting: all except those of studies that have tables of their own."""
        return [method for method in self.runs if not shown_apart(method)]

    @property
    def has_text(self) -> bool:
        """Whether zero-shot accuracy is known."""
        return any(not np.isnan(run.Z).all() for runs in self.runs.values() for run in runs)

    def value(self, method: str, column: str, table: str = "") -> Value:
        """Return the number for a method: a name in `COLUMNS`, or "last:DOMAIN" or "average:DOMAIN".

        A method that was not run has no number of ours, but may have a published one. If several tables print it,
        that of `table` is taken.
        """
        numbers = [column_of(run, column) for run in self.runs.get(method, ())]
        variant = parse_variant(method)
        plain = replace(variant, profile="").label
        return _value(numbers, find_published(self.published_name, plain, column, table))

    def zero_shot(self, column: str) -> Value:
        """Return the zero-shot accuracy for a column of Last accuracy; candidates are all classes of the sequence."""
        run = next(iter(self.runs.values()))[0]
        part, _, domain = column.partition(":")
        of: Mapping[str, Callable[[Doubles], Any]] = {"last": np.mean, "gap": metrics.gap, "last:sigma": metrics.sigma}
        if column not in of and (part != "last" or domain not in run.domains):
            return _value([], None)
        number = float(of[column](run.Z) if column in of else run.Z[run.domains.index(domain)])
        printed = find_published(self.published_name, "ZeroShot", column.replace("last", "zero-shot"))
        return _value([] if np.isnan(number) else [number], printed)

    def images(self, column: str) -> Value:
        """Return the training images of the first seed, for a column of Last accuracy of a domain, or of the gap."""
        run = next(iter(self.runs.values()))[0]
        _, _, domain = column.partition(":")
        known = {**dict(zip(run.domains, map(float, run.samples), strict=True)), "gap": metrics.gap(run.samples)}
        name = column if column == "gap" else domain
        printed = find_published(self.published_name, "training images", f"images:{name}")
        return Value(known.get(name, float("nan")), float("nan"), 1, printed, digits=0)

    @property
    def published_name(self) -> str:
        """Its name in the published tables, which does not depend on how images are drawn."""
        return self.name.replace("+released", "")


def _value(numbers: list[float], printed: PublishedCell | None) -> Value:
    if not numbers:
        return Value(float("nan"), float("nan"), 0, printed)
    return Value(float(np.mean(numbers)), metrics.interval(numbers), len(numbers), printed)


@dataclass(frozen=True, eq=False)
class Results:
    """Everything that `hycal bench` wrote to a folder."""

    groups: tuple[Group, ...]  # in a fixed order
    figures: tuple[FigureData, ...] = ()
    # What `hycal bench efficiency` measured, by method; empty if it was not run.
    efficiency: Mapping[str, Measured] = field(default_factory=dict)
    practice: tuple[PracticeRun, ...] = ()  # what `hycal bench practice` measured

    def find(self, name: str) -> Group | None:
        """Return the group called `name`; with the released code's samples if there are no others."""
        setting, _, order = name.partition("@")
        released = f"{setting}+released@{order}" if order else f"{setting}+released"
        by_name = {group.name: group for group in reversed(self.groups)}
        return by_name.get(name, by_name.get(released))


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


def collect(folder: Path) -> Results:
    """Return the results in a folder that `hycal bench run` wrote; each file is read once."""
    cells = {path: read_cell(path) for path in _files(folder / CELLS)}
    if not cells:
        raise HyCalError(f"There are no results in {folder}. Run `hycal bench run SETTING --out {folder}` first.")
    figures = {path: read_figure_data(path) for path in _files(folder / FIGURES)}
    manifests = {path: cell.manifest for path, cell in cells.items()}
    _check_agreement(manifests | {path: data.manifest for path, data in figures.items()})
    return Results(grouped(cells.values()), tuple(figures.values()), read_efficiency(folder), read_practice(folder))


def grouped(runs: Iterable[CellResult]) -> tuple[Group, ...]:
    """Return runs by setting, order and protocol, in a fixed order."""
    found: dict[tuple[str, str, str], dict[str, list[CellResult]]] = {}
    for run in runs:
        methods = found.setdefault((run.setting, run.order, run.protocol), {})
        methods.setdefault(run.method, []).append(run)
    return tuple(
        Group(
            *key,
            {name: tuple(sorted(methods[name], key=lambda run: run.seed)) for name in sorted(methods, key=table_place)},
        )
        for key, methods in sorted(found.items(), key=lambda item: (item[0][0], item[0][1] != DEFAULT_ORDER, item[0]))
    )


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("[!.]*.json"))


def table_place(label: str) -> tuple[int, str]:
    """Return the sort key of a method in a table: the order of `METHODS`, then others; variants after the plain one."""
    known, method = list(METHODS), parse_variant(label).method
    return known.index(method) if method in METHODS else len(known), label


def _check_agreement(manifests: Mapping[Path, Mapping[str, Any]]) -> None:
    """Raise an error that names the odd files, if runs of one table were made from different inputs.

    Versions may differ: results of older versions can be reported.
    """
    for entry, among in _SAME.items():
        found: dict[tuple[object, ...], dict[str, list[Path]]] = {}
        for path, about in manifests.items():
            by_value = found.setdefault(tuple(about.get(name) for name in among), {})
            by_value.setdefault(_as_text(about.get(entry)), []).append(path)
        for by_value in found.values():
            if len(by_value) > 1:
                raise HyCalError(_disagreement(entry, list(by_value.values())))


def _as_text(entry: Any) -> str:
    plain = {key: value for key, value in entry.items() if key != RANDOM_STATE} if isinstance(entry, dict) else entry
    return json.dumps(plain, sort_keys=True)


def _disagreement(entry: str, agreeing: list[list[Path]]) -> str:
    usual = max(agreeing, key=len)
    odd = sorted(path for paths in agreeing if paths is not usual for path in paths)
    more = f" and {len(odd) - _NAMED} more" if len(odd) > _NAMED else ""
    return (
        f"Runs of one table were made from different inputs ({entry}): {', '.join(map(str, odd[:_NAMED]))}{more} "
        f"unlike {usual[0]}. Delete those that are out of date and run again, or use a folder of its own for each."
    )
