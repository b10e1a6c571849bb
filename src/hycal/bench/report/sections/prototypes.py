"""Where class means lie among test images: t-SNE of the embeddings, and of random features."""

from __future__ import annotations

from functools import partial

from hycal.bench.report.blocks import Block, FigureBlock, NotRun, Section
from hycal.bench.report.results import Results
from hycal.bench.report.tables import run_command
from hycal.bench.views import View
from hycal.gravity.drawing import drawing, style

_SPACES = {"HyCal": "embeddings (HyCal's space)", "RanPAC": "random ReLU features (RanPAC's space)"}
_CAPTION = (
    "Dots are test images, large marks the means of the classes' training images. t-SNE with the cosine, seed {}."
)


def prototypes(results: Results) -> list[Section]:
    """Return the section."""
    title = "Prototypes (t-SNE)"
    blocks: list[Block] = [_figure(view) for view in results.views]
    if not blocks:
        blocks = [NotRun(title, "Not run yet:", (run_command(["xd8-high-scale"], "HyCal"),))]
    return [Section("prototypes", title, tuple(blocks))]


def _figure(view: View) -> FigureBlock:
    title = f"{view.setting}: class means among test images"
    return FigureBlock(title, _CAPTION.format(view.seed), partial(_draw, view))


def _draw(view: View) -> str:
    out: list[str] = []
    with drawing(f"prototypes/{view.setting}", out, columns=len(view.maps), size=(11.0, 5.2)) as axes:
        for ax, (method, points) in zip(axes, view.maps.items(), strict=True):
            ax.grid(visible=False)
            for number, domain in enumerate(view.domains):
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
