"""Drawings as SVG text: a canvas for any figure, and the two figures of gravity.

A drawing takes its text colour from the page, so it is legible in light and dark. The report of the benchmark draws on
the same canvas.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from hycal.errors import load_extra
from hycal.escaping import visible
from hycal.gravity.measure import Gravity
from hycal.validation import Doubles

INK = "#010203"  # stands for the page's text colour, and is replaced by it
COLOURS = (
    "#e4572e",
    "#2e86ab",
    "#3fa34d",
    "#a05fd0",
    "#d19a00",
    "#00a6a6",
    "#c2407f",
    "#7a8b2d",
    "#8d6e63",
    "#6b7fd7",
    "#808890",
)
_MARKERS = "osD^vPhX<>p"
Box = tuple[float, float, float, float]  # left, bottom, right, top


@contextmanager
def drawing(
    name: str, out: list[str], *, rows: int = 1, columns: int = 1, size: tuple[float, float] = (7.0, 4.0)
) -> Iterator[Any]:
    """Yield the axes of a new figure, row after row in one list; afterwards its SVG is appended to `out`.

    `name` must differ between the drawings of a page: ids inside the SVG are made from it.
    """
    matplotlib = load_extra("matplotlib", extra="bench", why="A figure")
    figures = load_extra("matplotlib.figure", extra="bench", why="A figure")
    ink = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    style: dict[Any, Any] = {
        **dict.fromkeys(ink, INK),
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "text.parse_math": False,
        "font.size": 9,
    }
    with matplotlib.rc_context(style):
        figure = figures.Figure(figsize=size, layout="constrained", dpi=130)
        figure.patch.set_alpha(0.0)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax in axes:
            ax.set_facecolor("none")
            ax.set_axisbelow(True)
            ax.grid(color=INK, alpha=0.12)
        yield axes
        for ax in axes:
            ax.set_visible(ax.has_data())
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = visible(buffer.getvalue(), keep="\n")
    out.append(svg[svg.index("<svg") :].replace(INK, "currentColor"))


def style(place: int) -> dict[str, Any]:
    """Return the colour and the marker of the line or cloud at a place."""
    return {"color": COLOURS[place % len(COLOURS)], "marker": _MARKERS[place % len(_MARKERS)]}


def name_points(ax: Any, names: Sequence[str], x: Iterable[float], y: Iterable[float]) -> None:
    """Write names beside finite points, where they cover neither another name nor any point.

    The rest of the figure must be drawn before: places depend on its layout.
    """
    height, letter, radius, beside = 7.5, 3.8, 2.8, 4.0  # points, of the small type and of a mark
    ax.figure.draw_without_rendering()
    scale = 72.0 / ax.figure.dpi
    frame = ax.get_window_extent()
    marks = [scale * ax.transData.transform(point) for one in ax.collections for point in one.get_offsets()]
    taken = [(a - radius, b - radius, a + radius, b + radius) for a, b in marks]
    for b, a, name in sorted((b, a, name) for name, a, b in zip(names, x, y, strict=True) if np.isfinite([a, b]).all()):
        middle, foot = scale * ax.transData.transform((a, b))
        width = letter * len(name)
        sides = {"left": middle + beside, "right": middle - beside - width}  # by the alignment of the text
        inside = {key: at for key, at in sides.items() if scale * frame.x0 < at and at + width < scale * frame.x1}
        levels = {
            key: _free_level(at, at + width, foot - height / 2.0, height, taken)
            for key, at in (inside or sides).items()
        }
        side = min(levels, key=lambda key: levels[key])
        left, low = sides[side], levels[side]
        taken.append((left, low, left + width, low + height))
        look: dict[str, Any] = {"ha": side, "va": "bottom", "fontsize": 6.5}
        if low > foot + radius:  # a line to its point
            look["arrowprops"] = {"arrowstyle": "-", "linewidth": 0.4, "color": INK, "shrinkA": 0, "shrinkB": 0}
        shift = beside if side == "left" else -beside
        ax.annotate(name, (a, b), xytext=(shift, low - foot), textcoords="offset points", **look)


def _free_level(left: float, right: float, low: float, height: float, taken: Sequence[Box]) -> float:
    """Return the lowest level from `low` up at which a text covers none of the boxes."""
    above = [(bottom, top) for start, bottom, stop, top in taken if start < right and left < stop]
    for bottom, top in sorted(above, key=lambda box: box[1]):
        if bottom < low + height and low < top:
            low = top
    return low


def heat_map(ax: Any, values: Doubles, rows: Sequence[str], columns: Sequence[str], *, low: float, high: float) -> None:
    """Draw numbers as a coloured grid with the numbers in it; NaN stays empty."""
    ax.grid(visible=False)
    ax.imshow(values, cmap="viridis", vmin=low, vmax=high, aspect="auto")
    digits = 0 if high - low > 20 else 1
    for (row, column), value in np.ndenumerate(values):
        if not np.isnan(value):
            colour = "black" if value > low + 0.55 * (high - low) else "white"
            ax.text(column, row, f"{value:.{digits}f}", ha="center", va="center", color=colour, fontsize=7.5)
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)


def draw_flow(shown: Sequence[Gravity], name: str) -> str:
    """Draw how often images of one domain are classified into another, one matrix for each model."""
    out: list[str] = []
    worst = max(float(np.nanmax(_lost(one), initial=1e-6)) for one in shown)
    with drawing(f"flow/{name}", out, columns=len(shown), size=(1.0 + 5.0 * len(shown), 4.4)) as axes:
        for ax, one in zip(axes, shown, strict=True):
            ax.grid(visible=False)
            ax.imshow(_lost(one), cmap="Reds", vmin=0, vmax=worst)
            for (row, column), rate in np.ndenumerate(100 * one.flow.rates):
                if row == column or rate > 0:
                    colour = {} if row == column else {"color": "white" if rate > 60 * worst else "black"}
                    ax.text(column, row, f"{rate:.1f}", ha="center", va="center", fontsize=7, **colour)
            ax.set_xticks(range(len(one.domains)), one.domains, rotation=30)
            ax.set_yticks(range(len(one.domains)), one.domains)
            ax.set_xlabel("given to (%)")
            ax.set_title(one.method)
    return out[0]


def _lost(one: Gravity) -> Doubles:
    """Return the rates of images that cross; NaN, which is transparent, on the diagonal and where none cross."""
    rates = one.flow.rates
    return np.where(np.eye(len(rates), dtype=bool) | (rates == 0), np.nan, rates)


def draw_pull(shown: Sequence[Gravity], name: str) -> str:
    """Draw taken and pull against the quantities that cause them by the paper's claim."""
    pairs = [("sample share", "taken"), ("samples per class", "pull"), ("visual entropy", "pull")]
    out: list[str] = []
    with drawing(f"pull/{name}", out, columns=len(pairs), size=(11.0, 3.8)) as axes:
        for ax, (against, of) in zip(axes, pairs, strict=True):
            for place, one in enumerate(shown):
                ax.scatter(one.columns[against], one.columns[of], s=24, label=one.method, linewidths=0, **style(place))
            ax.margins(x=0.15, y=0.12)  # room for the names
            ax.set_xlabel(against)
            ax.set_ylabel(of)
        axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
        for ax, pair in zip(axes, pairs, strict=True):
            name_points(ax, shown[-1].domains, *(shown[-1].columns[key] for key in pair))
    return out[0]
