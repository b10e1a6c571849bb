"""The report: Markdown, LaTeX and CSV tables, and one HTML page that needs nothing beside it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from hycal._version import __version__
from hycal.atomic import write_whole
from hycal.bench.report.collect import Group, collect
from hycal.bench.report.figures import FIGURES
from hycal.bench.report.tables import MISSING, csv_rows, html_table, latex, markdown, tables_of

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --page: #ffffff; --soft: #656d76; --line: #d5dbe1; --mark: #f3f5f7; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --page: #14171b; --soft: #9aa4af; --line: #343b43; --mark: #1e2329; }
}
body { color: var(--ink); background: var(--page); font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 72rem; padding: 0 1rem; }
figure { margin: 1.5rem 0; }
figcaption { color: var(--soft); margin-bottom: .4rem; } figcaption b { color: var(--ink); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child { text-align: left; } tbody tr:hover { background: var(--mark); }
.paper, .notes { color: var(--soft); font-size: 12px; } svg { max-width: 100%; height: auto; }
nav a { margin-right: 1rem; } a { color: inherit; }
""".strip()


def write_report(folder: Path) -> dict[str, Path]:
    """Write the report of the results in `folder` beside them; returns the files by form.

    The same results give the same bytes.
    """
    groups = collect(folder)
    tables = [table for group in groups for table in tables_of(group)]
    contents = {
        "markdown": ("report.md", "\n".join(map(markdown, tables))),
        "latex": ("report.tex", "\n".join(map(latex, tables))),
        "csv": ("report.csv", csv_rows(groups)),
        "html": ("report.html", page(groups)),
    }
    for name, text in contents.values():
        write_whole(folder / name, text.encode())
    return {form: folder / name for form, (name, _) in contents.items()}


def page(groups: Sequence[Group]) -> str:
    """Return the HTML page: tables and figures of every group, style and drawings inline."""
    links = "".join(f'<a href="#{html.escape(_anchor(group))}">{html.escape(group.name)}</a>' for group in groups)
    parts = "".join(_section(group) for group in groups)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>hycal benchmark</title><style>{_STYLE}</style></head><body><h1>hycal benchmark</h1>"
        f"<p>hycal {__version__}. Best in bold, second underlined; {MISSING} is missing. Where the paper has the "
        "same setting its number stands below ours, with a note if it is known to be wrong.</p>"
        f"<nav>{links}</nav>{parts}</body></html>\n"
    )


def _anchor(group: Group) -> str:
    return f"{group.name}.{group.protocol}"


def _section(group: Group) -> str:
    tables = "".join(html_table(table) for table in tables_of(group))
    figures = "".join(
        f"<figure><figcaption><b>{html.escape(f'{group.name}: {caption}')}</b></figcaption>{draw(group)}</figure>"
        for caption, draw in FIGURES.items()
    )
    title = html.escape(f"{group.name} ({group.protocol})")
    return f'<section id="{html.escape(_anchor(group))}"><h2>{title}</h2>{tables}{figures}</section>'
