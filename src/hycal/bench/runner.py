"""The runner: computes every cell of a grid, and the data of its figures, that has no result yet, side by side.

A result is written in one step under its final name. A run that is killed leaves only complete files, and the next run
continues from them. All workers read the same memory-mapped embeddings; each uses one BLAS thread.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from hycal.bench.cells import CELL_MARK, Cell, encode, manifest, read_manifest
from hycal.bench.domains import BenchDomain, have_text
from hycal.bench.figure_data import FIGURE_MARK, figure_manifest, figure_place, make_figure_data
from hycal.bench.methods import Variant
from hycal.bench.protocol import run_stream, zero_shot_correct
from hycal.bench.sampling import SAMPLES_HEAD, SampleList, draw_samples, sample_csv
from hycal.bench.settings import DEFAULT_ORDER, Setting
from hycal.escaping import file_name
from hycal.parallel.cluster import run_each
from hycal.storage.atomic import write_whole

CELLS, TIMING, SAMPLES, FIGURES = "cells", "timing", "samples", "figures"
Watch = Callable[[int, int], None]


@dataclass(frozen=True)
class Summary:
    """Summary of a run: cells computed, cells with a result already, figures, cells that cannot run, shortages."""

    computed: int
    known: int
    figures: int
    impossible: Mapping[str, str]
    shortages: Mapping[str, int]


@dataclass(frozen=True)
class _Work:
    """A cell or figure data to compute, and the path of its file."""

    cell: Cell
    domains: Sequence[BenchDomain]
    samples: Mapping[str, SampleList]
    manifest: Mapping[str, Any]
    path: Path

    @property
    def is_figure(self) -> bool:
        return "figure" in self.manifest

    @property
    def is_done(self) -> bool:
        return read_manifest(self.path) == self.manifest


def grid(
    settings: Iterable[Setting],
    variants: Sequence[Variant],
    *,
    seeds: Sequence[int] | None = None,
    orders: Sequence[str] = ("default",),
) -> list[Cell]:
    """Return the cells of every setting, order, seed (all of the setting's by default) and method."""
    return [
        Cell(setting, order, seed, variant)
        for setting in settings
        for order in orders
        for seed in (seeds or setting.seeds)
        for variant in variants
    ]


def run_grid(
    cells: Sequence[Cell],
    embedded: Mapping[str, Mapping[str, BenchDomain]],
    out: Path,
    *,
    cluster: str = "local:1",
    watch: Watch = lambda done, total: None,
) -> Summary:
    """Compute the cells that have no result in `out` yet.

    `embedded` has the domains by setting name. `out` gets `cells` (results), `timing` (seconds) and `samples` (lists of
    training images); every worker of the `cluster` (see `hycal.parallel.cluster`) must see it under the same path.
    `watch` is called with the number of finished cells and figure data, and of all.
    """
    out = out.absolute()  # workers may have another working directory
    digests = {name: {key: domain.digest() for key, domain in parts.items()} for name, parts in embedded.items()}
    impossible: dict[str, str] = {}
    shortages: dict[str, int] = {}
    wanted = []
    for cell in cells:
        domains = cell.domains(embedded[cell.setting.name])
        reason = cell.variant.why_not(cell.setting, text=have_text(domains))
        if reason:
            impossible[f"{cell.setting.label}, {cell.variant.label}"] = reason
            continue
        samples = _samples(cell, domains, out)
        shortages[f"{cell.setting.label}, seed {cell.seed}"] = sum(len(s.shortages) for s in samples.values())
        about = manifest(cell, domains, samples, digests[cell.setting.name])
        wanted.append(_Work(cell, domains, samples, about, out / CELLS / cell.place))
        if _has_figure(cell):
            wanted.append(_Work(cell, domains, samples, figure_manifest(about), out / FIGURES / figure_place(cell)))
    pending = sorted((work for work in wanted if not work.is_done), key=lambda work: work.is_figure, reverse=True)
    done = len(wanted) - len(pending)
    watch(done, len(wanted))
    for _ in run_each(partial(_compute, out=out), pending, cluster=cluster):
        done += 1
        watch(done, len(wanted))
    figures = sum(work.is_figure for work in pending)
    known = sum(not work.is_figure for work in wanted) - (len(pending) - figures)
    return Summary(len(pending) - figures, known, figures, impossible, {k: n for k, n in shortages.items() if n})


def _has_figure(cell: Cell) -> bool:
    """Return whether the cell has figure data: one for each setting that tests every step, of HyCal's first seed."""
    first = cell.seed == cell.setting.seeds[0] and cell.order == DEFAULT_ORDER
    return first and cell.variant == Variant("HyCal") and cell.setting.tests == "every-step"


def _samples(cell: Cell, domains: Sequence[BenchDomain], out: Path) -> dict[str, SampleList]:
    """Draw the training images of a cell, and write the list."""
    pools = {domain.name: domain.train_y for domain in domains}
    samples = draw_samples(cell.setting, cell.seed, pools, order=cell.order)
    order = "" if cell.setting.sampling == "own" else f".{cell.order}"
    path = out / SAMPLES / file_name(f"{cell.setting.label}{order}.{cell.seed}.csv")
    content = sample_csv(list(samples.values())).encode()
    if not path.exists() or path.read_bytes() != content:
        write_whole(path, content, mark=SAMPLES_HEAD.encode())
    return samples


def _compute(work: _Work, out: Path) -> None:
    with threadpool_limits(limits=1):
        if work.is_figure:
            content = make_figure_data(work.cell, work.domains, work.samples, work.manifest)
            write_whole(work.path, content, mark=FIGURE_MARK)
        else:
            _compute_cell(work, out)


def _compute_cell(work: _Work, out: Path) -> None:
    began = time.perf_counter()
    text = have_text(work.domains)
    setting, variant = work.cell.setting, work.cell.variant
    classifier = variant.build(setting, text=text, seed=work.cell.seed)
    outcome = run_stream(
        classifier, work.domains, work.samples, setting.protocol, tuned=variant.tuned, tests=setting.tests
    )
    zero_shot = zero_shot_correct(work.domains)
    seconds = {"seconds": round(time.perf_counter() - began, 3)}
    write_whole(out / TIMING / work.cell.place, json.dumps(seconds).encode(), mark=b'{"seconds":')
    write_whole(work.path, encode(work.manifest, outcome, zero_shot, work.domains), mark=CELL_MARK)
