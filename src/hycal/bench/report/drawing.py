"""One drawing as SVG text that takes its ink from the page, so that it is legible in light and dark."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hycal.errors import HyCalError

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
)
MARKERS = "osD^vP*X<>h"


@contextmanager
def figure(name: str, out: list[str], *, panels: int = 1, size: tuple[float, float] = (7.0, 4.0)) -> Iterator[Any]:
    """Yield the axes of a new figure; afterwards its SVG is appended to `out`."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise HyCalError("Figures need matplotlib. Install it: pip install 'hycal[bench]'.") from None
    ink = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    style: dict[Any, Any] = {**dict.fromkeys(ink, INK), "svg.fonttype": "none", "svg.hashsalt": name, "font.size": 9}
    with matplotlib.rc_context(style):
        drawing = Figure(figsize=size, layout="constrained")
        drawing.patch.set_alpha(0.0)
        axes = drawing.subplots(1, panels, squeeze=False)[0]
        for ax in axes:
            ax.set_facecolor("none")
            ax.set_axisbelow(True)
            ax.grid(color=INK, alpha=0.12)
        yield axes
        buffer = io.StringIO()
        drawing.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    out.append(svg[svg.index("<svg") :].replace(INK, "currentColor"))
