"""The forms that sections are written in: Markdown, LaTeX, CSV, HTML."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from hycal.bench.report.blocks import Block, Column, FigureBlock, NotRun, ResultTable, Section
from hycal.bench.report.results import Value

MISSING = "–"
Marks = dict[str, Callable[[str], str]]


def number(mean: float, interval: float, pm: str = " ± ") -> str:
    """Return a mean with its interval as text.

    >>> number(63.504, 0.731), number(63.5, float("nan")), number(float("nan"), float("nan"))
    ('63.50 ± 0.73', '63.50', '–')
    """
    if np.isnan(mean):
        return MISSING
    return f"{mean:.2f}" if np.isnan(interval) else f"{mean:.2f}{pm}{interval:.2f}"


def _cell(table: ResultTable, value: Value, marks: Marks, pm: str = " ± ") -> str:
    text = marks.get(value.rank, str)(number(value.mean, value.interval, pm))
    if value.published is None:
        return text
    error = value.published.error
    printed = number(value.published.value, value.published.interval, pm)
    note = f" [{table.notes.index(error) + 1}]" if error else ""
    return text + marks["published"](f"paper {printed}{note}")


def _grid(table: ResultTable, marks: Marks, pm: str = " ± ") -> list[list[str]]:
    return [[name, *(_cell(table, value, marks, pm) for value in values)] for name, values in table.rows]


def _full_title(column: Column) -> str:
    return f"{column.head}: {column.title}" if column.head else column.title


def markdown(section: Section) -> str:
    """Return the tables of a section in Markdown; figures are in the page."""
    return "\n".join(
        (f"## {section.title}\n", *(_markdown(b) for b in section.blocks if not isinstance(b, FigureBlock)))
    )


def _markdown(block: ResultTable | NotRun) -> str:
    if isinstance(block, NotRun):
        listed = "\n".join(f"    {command}" for command in block.commands)
        return f"### {block.title}\n\n{block.reason}\n\n{listed}\n"
    marks: Marks = {"best": "**{}**".format, "second": "<u>{}</u>".format, "published": "<br>{}".format}
    lines = [["method", *map(_full_title, block.columns)], ["---"] * (len(block.columns) + 1), *_grid(block, marks)]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    notes = "".join(f"\n[{place}] {note}\n" for place, note in enumerate(block.notes, 1))
    return f"### {block.title}\n\n{block.caption}\n\n{body}\n{notes}"


def _tex(text: str) -> str:
    escapes = {"_": r"\_", "%": r"\%", "σ": r"$\sigma$", "ρ": r"$\rho$", "–": "--", "&": r"\&", "#": r"\#"}
    for plain, escaped in escapes.items():
        text = text.replace(plain, escaped)
    return text


def latex(section: Section) -> str:
    """Return the tables of a section as LaTeX table environments; what was not run as comments."""
    return "\n".join((f"% {section.title}", *(_latex(b) for b in section.blocks if not isinstance(b, FigureBlock))))


def _latex(block: ResultTable | NotRun) -> str:
    if isinstance(block, NotRun):
        return "\n".join((f"% {block.title}: {block.reason}", *(f"%   {command}" for command in block.commands), ""))
    marks: Marks = {"best": r"\textbf{{{}}}".format, "second": r"\underline{{{}}}".format, "published": " ({})".format}
    heads = " & ".join(rf"\multicolumn{{{count}}}{{c}}{{{_tex(head)}}}" for head, count in block.heads)
    titles = " & ".join(_tex(column.title) for column in block.columns)
    body = [
        " & ".join([_tex(row[0]), *(cell.replace("–", "--") for cell in row[1:])]) + r" \\"
        for row in _grid(block, marks, r"$\pm$")
    ]
    notes = " ".join(f"[{place}] {note}" for place, note in enumerate(block.notes, 1))
    return "\n".join(
        (
            r"\begin{table}",
            rf"\caption{{{_tex(f'{block.title}. {block.caption} {notes}'.strip())}}}",
            rf"\begin{{tabular}}{{l{'c' * len(block.columns)}}}",
            r"\hline",
            *([rf" & {heads} \\"] if heads else []),
            rf"method & {titles} \\",
            r"\hline",
            *body,
            r"\hline",
            r"\end{tabular}",
            r"\end{table}",
            "",
        )
    )


def csv_rows(sections: Iterable[Section]) -> str:
    """Return every number of every table as CSV, ours and the published one."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    about = ["section", "table", "setting", "order", "protocol", "method", "column"]
    writer.writerow([*about, "mean", "interval", "seeds", "published", "published_interval", "published_error"])
    for section in sections:
        for table in section.blocks:
            if isinstance(table, ResultTable):
                for method, values in table.rows:
                    writer.writerows(
                        [section.title, table.title, *_where(column), method, column.name, *_numbers(value)]
                        for column, value in zip(table.columns, values, strict=True)
                    )
    return out.getvalue()


def _where(column: Column) -> list[str]:
    group = column.group
    return ["", "", ""] if group is None else [group.setting, group.order, group.protocol]


def _numbers(value: Value) -> list[str]:
    printed = value.published
    theirs = ["", "", ""] if printed is None else [_plain(printed.value), _plain(printed.interval), printed.error]
    return [_plain(value.mean), _plain(value.interval), str(value.seeds), *theirs]


def _plain(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4f}"


def html_section(section: Section) -> str:
    """Return a section as HTML."""
    return (
        f'<section id="{html.escape(section.anchor)}"><h2>{html.escape(section.title)}</h2>'
        f"{''.join(map(_html, section.blocks))}</section>"
    )


def _html(block: Block) -> str:
    if isinstance(block, NotRun):
        commands = html.escape("\n".join(block.commands))
        return (
            f'<div class="todo"><b>{html.escape(block.title)}</b> <span>{html.escape(block.reason)}</span>'
            f"<pre>{commands}</pre></div>"
        )
    caption = f"<figcaption><b>{html.escape(block.title)}</b><br>{html.escape(block.caption)}</figcaption>"
    if isinstance(block, FigureBlock):
        return f'<figure>{caption}<div class="wide drawing">{block.draw()}</div></figure>'
    return f"<figure>{caption}{_html_table(block)}</figure>"


def _html_table(table: ResultTable) -> str:
    marks: Marks = {
        "best": "<b>{}</b>".format,
        "second": "<u>{}</u>".format,
        "published": '<br><span class="paper">{}</span>'.format,
    }
    heads = "".join(f'<th class="head" colspan="{count}">{html.escape(head)}</th>' for head, count in table.heads)
    above = f"<tr><th></th>{heads}</tr>" if heads else ""
    head = "".join(f"<th>{html.escape(column.title)}</th>" for column in table.columns)
    body = "".join(
        f"<tr><th>{html.escape(name)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        for name, *cells in _grid(table, marks)
    )
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table.notes)
    listed = f'<ol class="notes">{notes}</ol>' if notes else ""
    return (
        f'<div class="wide"><table><thead>{above}<tr><th>method</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{listed}"
    )


def contents(sections: Sequence[Section]) -> str:
    """Return links to the sections as HTML."""
    links = (f'<a href="#{html.escape(section.anchor)}">{html.escape(section.title)}</a>' for section in sections)
    return f"<nav>{''.join(links)}</nav>"
