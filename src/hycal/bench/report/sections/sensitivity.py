"""How much HyCal depends on its parameters: alpha and beta of the weights, lambda and gamma of the covariance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hycal.bench.methods import Study, find_study
from hycal.bench.report.blocks import TITLES, Block, FigureBlock, NotRun, Section
from hycal.bench.report.results import Group, Results
from hycal.bench.report.tables import FAMILIES, run_command
from hycal.gravity.drawing import drawing, heat_map, style
from hycal.validation import Doubles

_NAMES = {"alpha": "α", "beta": "β", "reg": "λ", "gamma": "γ"}
_COLUMNS = ("last", "average", "s_cde")


def sensitivity(results: Results) -> list[Section]:
    """Return the section."""
    blocks: list[Block] = []
    for name, (draw, about) in _FIGURES.items():
        study = find_study(name)
        title = " and ".join(_NAMES[parameter] for parameter in study.vary)
        groups = [group for group in results.groups if any(label in group.runs for label in study.labels)]
        for group in groups:
            caption = f"{about} {_seeds(group, study)}"
            blocks.append(FigureBlock(f"{group.name}: {title}", caption, partial(draw, group, study)))
        if not groups:
            commands = tuple(run_command([f"{prefix}high-scale"], f"study:{name}") for prefix in FAMILIES.values())
            blocks.append(NotRun(title, "Not run yet:", commands))
    return [Section("sensitivity", "Sensitivity to parameters", tuple(blocks))]


def _grid(group: Group, study: Study, column: str) -> Doubles:
    """Return the means of a column over the grid of a study, one axis for each parameter."""
    shape = [len(values) for values in study.vary.values()]
    means = [group.value(label, column).mean for label in study.labels]
    return np.array(means).reshape(shape)


def _known(group: Group, study: Study) -> list[tuple[str, Doubles]]:
    grids = [(column, _grid(group, study, column)) for column in _COLUMNS]
    return [(column, grid) for column, grid in grids if not np.isnan(grid).all()]


def _seeds(group: Group, study: Study) -> str:
    seeds = {run.seed for label in study.labels for run in group.runs.get(label, ())}
    listed = f"seeds {', '.join(map(str, sorted(seeds)))}" if len(seeds) > 1 else f"seed {min(seeds)}"
    missing = "" if group.has_text else " S_CDE is missing: there are no text embeddings."
    return f"Protocol {group.protocol}, {listed}.{missing}"


def _curves(group: Group, study: Study) -> str:
    """Draw each parameter on the x axis, the other fixed on each curve."""
    grids, out = _known(group, study), list[str]()
    (first, one), (second, other) = study.vary.items()
    size = (4.6 * len(grids), 6.0)
    with drawing(f"sweep/{group.name}", out, rows=2, columns=len(grids), size=size) as axes:
        for place, (column, grid) in enumerate(grids):
            _lines(axes[place], grid, one, other, (first, second), TITLES[column])
            _lines(axes[len(grids) + place], grid.T, other, one, (second, first), TITLES[column])
    return out[0]


def _lines(
    ax: Any, grid: Doubles, along: Sequence[Any], curves: Sequence[Any], names: tuple[str, str], title: str
) -> None:
    for place, value in enumerate(curves):
        label = f"{_NAMES[names[1]]} = {value:g}"
        ax.plot(along, grid[:, place], label=label, markersize=4, linewidth=1.4, **style(place))
    ax.set_xlabel(_NAMES[names[0]])
    ax.set_ylabel(f"{title} (%)")
    ax.legend(fontsize=7.5, framealpha=0.0, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _maps(group: Group, study: Study) -> str:
    """Draw every pair of values as a coloured cell."""
    grids, out = _known(group, study), list[str]()
    (first, one), (second, other) = study.vary.items()
    with drawing(f"heat/{group.name}", out, columns=len(grids), size=(3.9 * len(grids) + 0.8, 3.4)) as axes:
        for ax, (column, grid) in zip(axes, grids, strict=True):
            low, high = float(np.nanmin(grid)), float(np.nanmax(grid))
            heat_map(ax, grid, [f"{v:g}" for v in one], [f"{v:g}" for v in other], low=low, high=high)
            ax.set_title(f"{TITLES[column]} (%)")
            ax.set_xlabel(_NAMES[second])
            ax.set_ylabel(_NAMES[first])
    return out[0]


_FIGURES: Mapping[str, tuple[Callable[[Group, Study], str], str]] = {
    "alpha-beta": (_curves, "Each curve varies one parameter and keeps the other."),
    "lambda-gamma": (_maps, "Every pair of the regularised covariance (1 - λ)S + λγI."),
}
