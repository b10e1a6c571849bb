"""Figures of the results of one setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hycal.bench import metrics
from hycal.bench.cells import CellResult
from hycal.bench.report.collect import Group
from hycal.bench.report.drawing import COLOURS as _COLOURS
from hycal.bench.report.drawing import MARKERS as _MARKERS
from hycal.bench.report.drawing import figure as _figure
from hycal.validation import Doubles


def _mean(runs: tuple[CellResult, ...], of: Callable[[CellResult], Any]) -> Doubles:
    mean: Doubles = np.mean([of(run) for run in runs], axis=0)
    return mean


def accuracy_curves(group: Group) -> str:
    """Draw the mean accuracy over the domains learned so far, after each step, for every method."""
    return _curves(group, "accuracy-curves", "accuracy on domains so far (%)", _accuracy_so_far)


def forgetting_curves(group: Group) -> str:
    """Draw what the domains learned before lost on average since they were learned, after each step."""
    return _curves(group, "forgetting-curves", "forgetting of earlier domains (points)", _forgetting_so_far)


def _accuracy_so_far(run: CellResult) -> list[float]:
    return [float(row[: step + 1].mean()) for step, row in enumerate(run.A)]


def _forgetting_so_far(run: CellResult) -> list[float]:
    steps = range(1, len(run.A) + 1)
    return [0.0 if t == 1 else metrics.forgetting(metrics.final_forgetting(run.A[:t, :t])) for t in steps]


def _curves(group: Group, name: str, label: str, of: Callable[[CellResult], list[float]]) -> str:
    out: list[str] = []
    with _figure(f"{name}/{group.name}", out) as (ax,):
        for place, (method, runs) in enumerate(group.runs.items()):
            style = {"color": _COLOURS[place % len(_COLOURS)], "marker": _MARKERS[place % len(_MARKERS)]}
            ax.plot(_mean(runs, of), label=method, markersize=4, linewidth=1.4, **style)
        ax.set_xticks(range(len(group.domains)), group.domains, rotation=20)
        ax.set_xlabel("after learning")
        ax.set_ylabel(label)
        ax.legend(fontsize=7, ncols=2, framealpha=0.0)
    return out[0]


def accuracy_matrix(group: Group) -> str:
    """Draw the accuracy matrix of the first method: rows are steps, columns domains."""
    method, runs = next(iter(group.runs.items()))
    A = _mean(runs, lambda run: run.A)
    out: list[str] = []
    with _figure(f"matrix/{group.name}", out, size=(6.0, 4.6)) as (ax,):
        ax.grid(visible=False)
        ax.imshow(A, cmap="viridis", vmin=0, vmax=100)
        for (step, domain), value in np.ndenumerate(A):
            if not np.isnan(value):
                colour = "black" if value > 55 else "white"
                ax.text(domain, step, f"{value:.0f}", ha="center", va="center", color=colour, fontsize=8)
        ax.set_xticks(range(len(A)), group.domains, rotation=30)
        ax.set_yticks(range(len(A)), group.domains)
        ax.set_xlabel("tested on")
        ax.set_ylabel("after learning")
        ax.set_title(method)
    return out[0]


def class_accuracy_by_shots(group: Group) -> str:
    """Draw the accuracy of every class after the last step over its number of shots, first method, all seeds."""
    method, runs = next(iter(group.runs.items()))
    out: list[str] = []
    with _figure(f"shots/{group.name}", out) as (ax,):
        for place, domain in enumerate(group.domains):
            points = [v for run in runs for label, v in run.classes.items() if label.startswith(f"{domain}/")]
            shots, accuracy = zip(*points, strict=True)
            style = {"color": _COLOURS[place % len(_COLOURS)], "marker": _MARKERS[place % len(_MARKERS)]}
            ax.scatter(shots, accuracy, s=12, alpha=0.55, label=domain, linewidths=0, **style)
        ax.set_xlabel("shots of the class")
        ax.set_ylabel("accuracy on the class (%)")
        ax.set_title(method)
        ax.legend(fontsize=7, ncols=2, framealpha=0.0)
    return out[0]


def sample_distribution(group: Group) -> str:
    """Draw how many images each domain has, and the shots of its classes, first seed."""
    run = next(iter(group.runs.values()))[0]
    colours = [_COLOURS[place % len(_COLOURS)] for place in range(len(run.domains))]
    out: list[str] = []
    with _figure(f"samples/{group.name}", out, panels=2, size=(8.0, 3.2)) as (left, right):
        left.bar(range(len(run.domains)), run.samples, color=colours)
        left.set_xticks(range(len(run.domains)), run.domains, rotation=40)
        left.set_ylabel("training images of the domain")
        ranked = sorted((shots for shots, _ in run.classes.values()), reverse=True)
        right.bar(range(len(ranked)), ranked, width=1.0, color=_COLOURS[1])
        right.set_xlabel("classes, most shots first")
        right.set_ylabel("shots of the class")
    return out[0]


#: Every figure of a group by its caption.
FIGURES: Mapping[str, Callable[[Group], str]] = {
    "Accuracy after each step": accuracy_curves,
    "Accuracy matrix": accuracy_matrix,
    "Forgetting after each step": forgetting_curves,
    "Accuracy of a class by its shots": class_accuracy_by_shots,
    "Training images": sample_distribution,
}
