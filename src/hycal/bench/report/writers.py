"""The report in its four forms: Markdown, LaTeX and HTML by templates, and CSV.

Templates are in `templates`; the HTML page extends the page of `hycal.gravity.page` and needs nothing beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from hycal._version import __version__
from hycal.bench.report.blocks import MISSING, Column, NotRun, ResultTable, Section, Words, cell_text, latex_row
from hycal.bench.report.definitions import DEFINITIONS
from hycal.bench.report.results import Results, Value
from hycal.bench.report.sections import all_sections
from hycal.escaping import csv_line, markdown_cell, tex_text, visible
from hycal.gravity.page import PAGE_MARK, environment
from hycal.storage.atomic import check_replaceable, write_whole

FILES = {"markdown": "report.md", "latex": "report.tex", "csv": "report.csv", "html": "report.html"}
_INTRODUCTION = (
    f"hycal {__version__}. Best in bold, second underlined; {MISSING} is missing. Where the paper has the same setting "
    "its number stands below ours, with a note if it is known to be wrong."
)
_COLUMNS = ("section", "table", "setting", "order", "protocol", "method", "column", "mean", "interval", "seeds")
#: What a file has near its beginning that hycal wrote.
_FILE_MARKS = {
    "markdown": b"Best in bold, second underlined",
    "latex": b"% hycal bench report",
    "csv": ",".join(_COLUMNS).encode(),
    "html": PAGE_MARK,
}

_AGAIN = NotRun(
    "How to add what is missing",
    "Run any of the commands below, then write the report again. RESULTS stands for the folder of this report, "
    "EMBEDDINGS for what `hycal bench embed` made of your copies of the data sets (DATACOMP-EMBEDDINGS: with --encoder "
    "datacomp-vit-b16).",
    ("hycal bench report RESULTS",),
)


def write_report(results: Results, folder: Path, *, force: bool = False) -> dict[str, Path]:
    """Write the report of `results` to `folder`; return the files by form.

    The same results give the same bytes. `force` replaces files that hycal did not write.
    """
    marks = {form: b"" if force else mark for form, mark in _FILE_MARKS.items()}
    for form, name in FILES.items():
        check_replaceable(folder / name, marks[form])
    sections = with_closing(all_sections(results))
    for form, name in FILES.items():
        write_whole(folder / name, render(form, sections).encode(), mark=marks[form])
    return {form: folder / name for form, name in FILES.items()}


def render(form: str, sections: Sequence[Section], *, introduction: str = _INTRODUCTION) -> str:
    """Return sections as the text of one form, below an introduction; only HTML has the figures."""
    if form == "csv":
        return _csv(sections)
    if form == "latex":  # has its own use of braces
        templates = environment("hycal.bench.report", block=("<%", "%>"), variable=("<<", ">>"))
    else:
        templates = environment("hycal.bench.report")
    templates.filters |= {"tex": tex_text, "cell": markdown_cell, "visible": visible}
    text = templates.get_template(FILES[form]).render(
        title="hycal benchmark",
        introduction=introduction,
        sections=sections,
        cell=partial(cell_text, form),
        row=latex_row,
    )
    return text if form == "html" else text[:-1]  # without the empty line after the last block


def _csv(sections: Iterable[Section]) -> str:
    """Return every number of every table, ours and the published one."""
    lines = [[*_COLUMNS, "published", "published_interval", "published_error"]]
    for section in sections:
        for table in section.blocks:
            if isinstance(table, ResultTable):
                for method, values in table.rows:
                    lines.extend(
                        [section.title, table.title, *_where(column), method, column.name, *_numbers(value)]
                        for column, value in zip(table.columns, values, strict=True)
                    )
    return "".join(f"{csv_line(line)}\n" for line in lines)


def _where(column: Column) -> list[str]:
    group = column.group
    return ["", "", ""] if group is None else [group.setting, group.order, group.protocol]


def _numbers(value: Value) -> list[str]:
    printed = value.published
    theirs = ["", "", ""] if printed is None else [_plain(printed.value), _plain(printed.interval), printed.error]
    return [_plain(value.mean), _plain(value.interval), str(value.seeds), *theirs]


def _plain(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4f}"


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
