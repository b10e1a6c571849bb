"""The end of a report, made from its other sections: what the columns mean, and what is not run yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hycal.bench.report.blocks import NotRun, Section, Words
from hycal.bench.report.definitions import DEFINITIONS

_AGAIN = NotRun(
    "How to add what is missing",
    "Run any of the commands below, then write the report again. RESULTS stands for the folder of this report, "
    "EMBEDDINGS for what `hycal bench embed` made of your copies of the data sets (DATACOMP-EMBEDDINGS: with --encoder "
    "datacomp-vit-b16).",
    ("hycal bench report RESULTS",),
)


def with_closing(sections: Sequence[Section]) -> list[Section]:
    """Return the sections with all that is not run in one at the end, and what columns mean before it."""
    shown = [replace(one, blocks=tuple(b for b in one.blocks if not isinstance(b, NotRun))) for one in sections]
    missing = [block for one in sections for block in one.blocks if isinstance(block, NotRun)]
    found = [section for section in shown if section.blocks]
    meanings = {one.title: one.meaning for one in DEFINITIONS.values()}
    found.append(Section("definitions", "What the columns mean", (Words(tuple(meanings.items())),)))
    if missing:
        found.append(Section("not-run", "Not run yet", (_AGAIN, *missing)))
    return found
