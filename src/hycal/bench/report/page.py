"""The report: Markdown, LaTeX and CSV tables, and one HTML page that needs nothing beside it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from hycal._version import __version__
from hycal.bench.report.blocks import Section
from hycal.bench.report.results import Results
from hycal.bench.report.sections import all_sections
from hycal.bench.report.writers import MISSING, contents, csv_rows, html_section, latex, markdown
from hycal.storage.atomic import write_whole

_INTRODUCTION = (
    f"hycal {__version__}. Best in bold, second underlined; {MISSING} is missing. Where the paper has the same setting "
    "its number stands below ours, with a note if it is known to be wrong. In commands RESULTS stands for the folder "
    "of this report, EMBEDDINGS for what `hycal bench embed` made of your copies of the data sets "
    "(DATACOMP-EMBEDDINGS: with --encoder datacomp-vit-b16)."
)
_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --page: #ffffff; --soft: #5c656e; --line: #d5dbe1; --mark: #f3f5f7; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --page: #14171b; --soft: #a3adb8; --line: #343b43; --mark: #1e2329; }
}
* { box-sizing: border-box; }
body { color: var(--ink); background: var(--page); font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 82rem; padding: 0 1rem; }
h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); padding-bottom: .3rem; }
figure { margin: 1.8rem 0; }
figcaption { color: var(--soft); margin-bottom: .5rem; max-width: 60rem; } figcaption b { color: var(--ink); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: .25rem .5rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th.head { text-align: center; }
th:first-child { text-align: left; position: sticky; left: 0; background: var(--page); }
tbody tr:hover, tbody tr:hover th { background: var(--mark); }
.paper, .notes { color: var(--soft); font-size: 12px; }
.drawing svg { display: block; width: 100%; min-width: 52rem; max-width: 76rem; height: auto; }
.todo { border-left: 3px solid var(--line); padding: .2rem .9rem; margin: .8rem 0; color: var(--soft); }
.todo b { color: var(--ink); } .todo pre { margin: .2rem 0; overflow-x: auto; font-size: 12px; }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; } a { color: inherit; }
""".strip()


def write_report(results: Results, folder: Path) -> dict[str, Path]:
    """Write the report of `results` to `folder`; return the files by form.

    The same results give the same bytes.
    """
    sections = all_sections(results)
    texts = {
        "markdown": ("report.md", f"{_INTRODUCTION}\n\n" + "\n".join(map(markdown, sections))),
        "latex": ("report.tex", "\n".join(map(latex, sections))),
        "csv": ("report.csv", csv_rows(sections)),
        "html": ("report.html", _page(sections)),
    }
    for name, text in texts.values():
        write_whole(folder / name, text.encode())
    return {form: folder / name for form, (name, _) in texts.items()}


def _page(sections: Sequence[Section]) -> str:
    body = f"<p>{_INTRODUCTION}</p>{contents(sections)}{''.join(map(html_section, sections))}"
    return document("hycal benchmark", body)


def document(title: str, body: str) -> str:
    """Return a whole HTML page in the report's style."""
    name = html.escape(title)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}</title><style>{_STYLE}</style></head><body><h1>{name}</h1>{body}</body></html>\n"
    )
