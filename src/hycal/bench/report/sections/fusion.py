"""HyCal with image and text summed, and concatenated."""

from __future__ import annotations

from hycal.bench.methods import find_study
from hycal.bench.report.blocks import Section
from hycal.bench.report.results import Group, Results
from hycal.bench.report.tables import IMBALANCES, Part, combined

_CAPTION = "Sum keeps the width of the embedding, concatenation doubles it. Needs text embeddings."


def fusion(results: Results) -> list[Section]:
    """Return the section; the bundled disciplines have no text, so there is nothing to fuse there."""
    (concat,) = find_study("fusion").labels

    def belongs(group: Group, method: str) -> bool:
        return method in ("HyCal", concat) and concat in group.runs and group.has_text

    parts = [Part(head, name, ("last", "average", "s_cde", "ece")) for head, name in IMBALANCES.items()]
    title = "Fusion of image and text"
    blocks = combined(results, title, _CAPTION, parts, run="HyCal study:fusion", belongs=belongs)
    return [Section("fusion", title, tuple(blocks))]
