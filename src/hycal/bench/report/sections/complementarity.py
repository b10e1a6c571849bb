"""How cosine similarity and Mahalanobis distance relate, and who of them is right about which images."""

from __future__ import annotations

from functools import partial

import numpy as np

from hycal.bench.report.blocks import Block, FigureBlock, NotRun, Section
from hycal.bench.report.results import Results
from hycal.bench.report.tables import run_command
from hycal.bench.views import View
from hycal.gravity.drawing import COLOURS, drawing

_KINDS = {  # label: whether cosine, distance and the blend are right (None for either)
    "both right": (True, True, None),
    "cosine only": (True, False, None),
    "Mahalanobis only": (False, True, None),
    "blend only": (False, False, True),
    "none": (False, False, False),
}
_COLOUR = dict(zip(_KINDS, (COLOURS[4], COLOURS[2], COLOURS[0], COLOURS[6], COLOURS[10]), strict=True))


def complementarity(results: Results) -> list[Section]:
    """Return the section."""
    title = "Cosine and Mahalanobis"
    blocks: list[Block] = [_figure(view) for view in results.views]
    if not blocks:
        blocks = [NotRun(title, "Not run yet:", (run_command(["xd8-high-scale"], "HyCal"),))]
    return [Section("cosine-mahalanobis", title, tuple(blocks))]


def _figure(view: View) -> FigureBlock:
    totals = _totals(view)
    apart = 100.0 * (totals["cosine only"] + totals["Mahalanobis only"]) / sum(totals.values())
    caption = (
        "Left: both measures between a test image and its own class, coloured by who answers right. Right: who answers "
        f"right, all test images, seed {view.seed}. On {apart:.1f}% of them exactly one of the two measures is right."
    )
    return FigureBlock(f"{view.setting}: relation and agreement", caption, partial(_draw, view, totals))


def _draw(view: View, totals: dict[str, int]) -> str:
    out: list[str] = []
    with drawing(f"complementarity/{view.setting}", out, columns=2, size=(10.0, 4.2)) as (left, right):
        for kind, pattern in _KINDS.items():
            rows = np.all([view.right[:, i] == want for i, want in enumerate(pattern) if want is not None], axis=0)
            left.scatter(
                view.cosine[rows],
                view.distance[rows],
                s=9,
                alpha=0.7,
                linewidths=0,
                color=_COLOUR[kind],
                label=kind,
                rasterized=True,
            )
        left.set_yscale("log")
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


def _totals(view: View) -> dict[str, int]:
    totals = dict.fromkeys(_KINDS, 0)
    for who, number in view.agreement.items():
        answers = [name in who.split() for name in ("cosine", "mahalanobis", "dynamic")]
        kind = next(
            kind
            for kind, pattern in _KINDS.items()
            if all(want in (None, got) for want, got in zip(pattern, answers, strict=True))
        )
        totals[kind] += number
    return totals
