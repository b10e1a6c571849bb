"""The figures of a setting: how accuracy and forgetting develop, and what they depend on, for every method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hycal.bench import metrics
from hycal.bench.cells import CellResult
from hycal.bench.report.results import Group
from hycal.gravity.drawing import INK, drawing, heat_map, style
from hycal.validation import Doubles

_IN_A_ROW = 4
_BINS = 8


def _mean(runs: tuple[CellResult, ...], of: Callable[[CellResult], Any]) -> Doubles:
    return np.mean([of(run) for run in runs], axis=0)


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
    with drawing(f"{name}/{group.name}", out, size=(9.5, 4.2)) as (ax,):
        for place, method in enumerate(group.methods):
            ax.plot(_mean(group.runs[method], of), label=method, markersize=4, linewidth=1.4, **style(place))
        ax.set_xticks(range(len(group.domains)), group.domains)
        ax.set_xlabel("after learning")
        ax.set_ylabel(label)
        ax.figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    return out[0]


def domain_curves(group: Group) -> str:
    """Draw the accuracy on each domain from the step at which it is learned to the last, for every method."""
    rows, columns = _panels(len(group.domains))
    out: list[str] = []
    with drawing(f"domains/{group.name}", out, rows=rows, columns=columns, size=(2.8 * columns, 2.4 * rows)) as axes:
        for number, (ax, domain) in enumerate(zip(axes, group.domains, strict=False)):
            steps = range(number + 1, len(group.domains) + 1)
            for place, method in enumerate(group.methods):
                accuracy = _mean(group.runs[method], lambda run: run.A)[number:, number]
                ax.plot(steps, accuracy, label=method, markersize=3, linewidth=1.2, **style(place))
            ax.set_title(domain, fontsize=9)
            ax.set_xlim(0.7, len(group.domains) + 0.3)
            if number % columns == 0:
                ax.set_ylabel("accuracy (%)")
            if number >= len(group.domains) - columns:
                ax.set_xlabel("step")
        handles = axes[0].get_legend_handles_labels()
        axes[0].figure.legend(*handles, loc="outside lower center", ncols=6, frameon=False)
    return out[0]


def _panels(count: int) -> tuple[int, int]:
    columns = min(_IN_A_ROW, count)
    return -(-count // columns), columns


def accuracy_matrices(group: Group) -> str:
    """Draw the accuracy matrix of every method: rows are steps, columns domains."""
    rows, columns = _panels(len(group.methods))
    out: list[str] = []
    with drawing(f"matrix/{group.name}", out, rows=rows, columns=columns, size=(3.1 * columns, 2.9 * rows)) as axes:
        for place, (ax, method) in enumerate(zip(axes, group.methods, strict=False)):
            A = _mean(group.runs[method], lambda run: run.A)
            steps = group.domains if place % columns == 0 else [""] * len(A)
            heat_map(ax, A, steps, group.domains, low=0.0, high=100.0)
            ax.tick_params(axis="x", rotation=60)
            ax.set_title(method, fontsize=9)
    return out[0]


def class_accuracy_by_shots(group: Group) -> str:
    """Draw the accuracy of classes after the last step over their shots: means of bins, and every class."""
    rows, columns = _panels(len(group.methods))
    out: list[str] = []
    with drawing(f"shots/{group.name}", out, rows=rows, columns=columns, size=(3.1 * columns, 2.4 * rows)) as axes:
        for place, (ax, method) in enumerate(zip(axes, group.methods, strict=False)):
            for number, domain in enumerate(group.domains):
                points = _points(group.runs[method], f"{domain}/")
                look = style(number)
                ax.scatter(*points.T, s=9, alpha=0.6, linewidths=0, label=domain, rasterized=True, **look)
            ax.plot(*_binned(_points(group.runs[method], "")).T, color=INK, linewidth=1.6)
            ax.set_title(method, fontsize=9)
            ax.set_ylim(-3, 103)
            if place % columns == 0:
                ax.set_ylabel("class accuracy (%)")
            if place >= len(group.methods) - columns:
                ax.set_xlabel("shots of the class")
        handles = axes[0].get_legend_handles_labels()
        axes[0].figure.legend(*handles, loc="outside lower center", ncols=8, frameon=False, markerscale=2)
    return out[0]


def _points(runs: tuple[CellResult, ...], prefix: str) -> Doubles:
    """Return shots and accuracy of the classes whose label begins so, all seeds."""
    return np.array(
        [v for run in runs for label, v in run.classes.items() if label.startswith(prefix)], dtype=np.float64
    )


def _binned(points: Doubles) -> Doubles:
    """Return the means of the points in equally wide ranges of shots."""
    edges = np.linspace(points[:, 0].min(), points[:, 0].max(), _BINS + 1)
    which = np.searchsorted(edges[1:-1], points[:, 0], side="right")
    return np.array([points[which == part].mean(axis=0) for part in np.unique(which)])


def sample_distribution(group: Group) -> str:
    """Draw how many images each domain has, and the shots of its classes, first seed."""
    run = next(iter(group.runs.values()))[0]
    out: list[str] = []
    with drawing(f"samples/{group.name}", out, columns=2, size=(9.5, 3.4)) as (left, right):
        bars = left.bar(
            range(len(run.domains)), run.samples, color=[style(i)["color"] for i in range(len(run.domains))]
        )
        left.bar_label(bars, fontsize=7.5)
        left.set_xticks(range(len(run.domains)), run.domains, rotation=40)
        left.set_ylabel("training images of the domain")
        start = 0
        for place, domain in enumerate(run.domains):
            shots = sorted((k for label, (k, _) in run.classes.items() if label.startswith(f"{domain}/")), reverse=True)
            right.bar(range(start, start + len(shots)), shots, width=1.0, color=style(place)["color"])
            start += len(shots)
        right.set_xlabel("classes, domain after domain")
        right.set_ylabel("shots of the class")
    return out[0]


#: Every figure of a setting by its title: what draws it, and what it shows.
FIGURES: Mapping[str, tuple[Callable[[Group], str], str]] = {
    "training images": (sample_distribution, "First seed."),
    "accuracy after each step": (accuracy_curves, "Mean over the domains learned so far, and over seeds."),
    "accuracy on each domain after each step": (
        domain_curves,
        "From the step at which the domain is learned; mean over seeds.",
    ),
    "forgetting after each step": (
        forgetting_curves,
        "Accuracy when learned less accuracy now, mean over earlier domains and seeds.",
    ),
    "accuracy matrices": (
        accuracy_matrices,
        "Rows: after learning that domain. Columns: tested on that domain. Percent, mean over seeds.",
    ),
    "accuracy of a class by its shots": (
        class_accuracy_by_shots,
        "After the last step, all seeds. The line is the mean of classes with similar shots.",
    ),
}
