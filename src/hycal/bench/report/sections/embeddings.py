"""Sections of the embeddings: example images, where class means lie among test images, and how both measures relate."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from html import escape

import numpy as np

from hycal.bench.figure_data import FigureData
from hycal.bench.report.blocks import FigureBlock, NotRun, Section
from hycal.bench.report.results import Results
from hycal.bench.report.tables import run_command
from hycal.gravity.drawing import COLOURS, drawing, style

_KINDS = {  # label: whether cosine, distance and the blend are right (None for either)
    "both right": (True, True, None),
    "cosine only": (True, False, None),
    "Mahalanobis only": (False, True, None),
    "blend only": (False, False, True),
    "none": (False, False, False),
}
_COLOUR = dict(zip(_KINDS, (COLOURS[4], COLOURS[2], COLOURS[0], COLOURS[6], COLOURS[10]), strict=True))
_SPACES = {"HyCal": "embeddings (HyCal's space)", "RanPAC": "random ReLU features (RanPAC's space)"}
_SIDE = 90  # pixels of an example image
_EXAMPLES = "The first training image of some classes of each domain."
_PROTOTYPES = (
    "Dots are test images, large marks the means of the classes' training images. t-SNE with the cosine, seed {}."
)


def embeddings(results: Results) -> list[Section]:
    """Return a section of each kind of figure, with one figure for each set of figure data."""
    return [
        _example_section(results),
        _section(results, "cosine-mahalanobis", "Cosine and Mahalanobis", _complementarity),
        _section(results, "prototypes", "Prototypes (t-SNE)", _prototypes),
    ]


def _example_section(results: Results) -> Section:
    """Return the images of the embeddings that came with some; the bundled ones have none."""
    shown = [data for data in results.figures if data.examples]
    figures = (
        FigureBlock(f"{data.setting}: example images", _EXAMPLES, partial(_draw_examples, data)) for data in shown
    )
    reason = "Embeddings of your own copies come with some; the bundled embeddings have none:"
    missing = NotRun("Example images", reason, (run_command(["high-scale"], "HyCal"),))
    return Section("examples", "Example images", tuple(figures) or (missing,))


def _draw_examples(data: FigureData) -> str:
    """Draw one row of thumbnails for each domain."""
    most = max(map(len, data.examples.values()))
    parts = []
    for row, (domain, images) in enumerate(data.examples.items()):
        parts.append(f'<text x="0" y="{_SIDE * (row + 0.55):g}">{escape(domain)}</text>')
        for column, image in enumerate(images):
            place = f'x="{_SIDE * (column + 1):g}" y="{_SIDE * row:g}" width="{_SIDE - 4}" height="{_SIDE - 4}"'
            parts.append(f'<image {place} href="data:image/jpeg;base64,{image}"/>')
    width, height = _SIDE * (most + 1), _SIDE * len(data.examples)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-size="13" fill="currentColor">{"".join(parts)}</svg>'


def _section(results: Results, anchor: str, title: str, figure: Callable[[FigureData], FigureBlock]) -> Section:
    missing = NotRun(title, "Not run yet:", (run_command(["xd8-high-scale"], "HyCal"),))
    return Section(anchor, title, tuple(map(figure, results.figures)) or (missing,))


def _complementarity(data: FigureData) -> FigureBlock:
    totals = _totals(data)
    apart = 100.0 * (totals["cosine only"] + totals["Mahalanobis only"]) / sum(totals.values())
    caption = (
        "Left: both measures between a test image and its own class, coloured by who answers right. Middle: the rank "
        "of the own class by each measure; 1 is a right answer. Right: who answers right, all test images, seed "
        f"{data.seed}. On {apart:.1f}% of them exactly one of the two measures is right."
    )
    return FigureBlock(f"{data.setting}: relation and agreement", caption, partial(_draw_complementarity, data, totals))


def _draw_complementarity(data: FigureData, totals: dict[str, int]) -> str:
    out: list[str] = []
    with drawing(f"complementarity/{data.setting}", out, columns=3, size=(14.0, 4.2)) as (left, middle, right):
        for kind, pattern in _KINDS.items():
            rows = np.all([data.right[:, i] == want for i, want in enumerate(pattern) if want is not None], axis=0)
            look = {"s": 9, "alpha": 0.7, "linewidths": 0, "color": _COLOUR[kind], "label": kind, "rasterized": True}
            left.scatter(data.cosine[rows], data.distance[rows], **look)
            middle.scatter(*data.ranks[rows].T, **look)
        middle.set_xlabel("rank of the own class by cosine")
        middle.set_ylabel("rank of the own class by distance")
        left.set_yscale("log")
        middle.set_xscale("log")
        middle.set_yscale("log")
        for axis in (left.yaxis, middle.xaxis, middle.yaxis):
            axis.set_major_formatter("{x:g}")  # that of a logarithmic axis writes formulas
            axis.set_minor_formatter("")
        left.set_xlabel("cosine with the own class")
        left.set_ylabel("squared Mahalanobis distance to the own class")
        left.legend(fontsize=8, framealpha=0.0, markerscale=2)
        shares = [100.0 * totals[kind] / sum(totals.values()) for kind in _KINDS]
        bars = right.barh(range(len(_KINDS)), shares, color=[_COLOUR[kind] for kind in _KINDS])
        right.bar_label(bars, labels=[f"{share:.1f}%" for share in shares], padding=3)
        right.set_xlim(0, max(shares) * 1.18)
        right.set_yticks(range(len(_KINDS)), _KINDS)
        right.invert_yaxis()
        right.set_xlabel("of all test images, after the last step (%)")
    return out[0]


def _totals(data: FigureData) -> dict[str, int]:
    totals = dict.fromkeys(_KINDS, 0)
    for who, number in data.agreement.items():
        answers = [name in who.split() for name in ("cosine", "mahalanobis", "dynamic")]
        kind = next(
            kind
            for kind, pattern in _KINDS.items()
            if all(want in (None, got) for want, got in zip(pattern, answers, strict=True))
        )
        totals[kind] += number
    return totals


def _prototypes(data: FigureData) -> FigureBlock:
    title = f"{data.setting}: class means among test images"
    return FigureBlock(title, _PROTOTYPES.format(data.seed), partial(_draw_prototypes, data))


def _draw_prototypes(data: FigureData) -> str:
    out: list[str] = []
    with drawing(f"prototypes/{data.setting}", out, columns=len(data.maps), size=(11.0, 5.2)) as axes:
        for ax, (method, points) in zip(axes, data.maps.items(), strict=True):
            ax.grid(visible=False)
            for number, domain in enumerate(data.domains):
                own = points.domains == number
                images, means = points.places[own & ~points.means], points.places[own & points.means]
                look = style(number)
                ax.scatter(*images.T, s=7, alpha=0.45, linewidths=0, color=look["color"], rasterized=True)
                ax.scatter(*means.T, s=34, linewidths=0.6, edgecolors="white", label=domain, **look)
            ax.set_title(_SPACES.get(method, method))
            ax.set_xticks([])
            ax.set_yticks([])
        axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=8, frameon=False)
    return out[0]
