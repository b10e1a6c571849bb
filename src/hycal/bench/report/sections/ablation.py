"""HyCal with one measure only, with both averaged, and as it is."""

from __future__ import annotations

from hycal.bench.methods import find_study
from hycal.bench.report.blocks import Section
from hycal.bench.report.results import Group, Results
from hycal.bench.report.tables import FAMILIES, IMBALANCES, Part, combined

_CAPTION = "HyCal blends cosine and Mahalanobis by the shots of a class; the others use one of them, or their average."


def ablation(results: Results) -> list[Section]:
    """Return the section."""
    wanted = ("HyCal", *find_study("metrics").labels)

    def belongs(group: Group, method: str) -> bool:
        return method in wanted and any(label in group.runs for label in wanted[1:])

    blocks = []
    for family, prefix in FAMILIES.items():
        parts = [Part(head, prefix + name, ("last", "average", "s_cde", "ece")) for head, name in IMBALANCES.items()]
        title = f"Metrics, {family}"
        blocks += combined(results, title, _CAPTION, parts, run="HyCal study:metrics", belongs=belongs)
    return [Section("metrics", "Metric ablation", tuple(blocks))]
