"""Tables of results, and the forms they are written in: Markdown, LaTeX, CSV, HTML."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hycal.bench.report.collect import LOWER_IS_BETTER, UNRANKED, Group, Value

TITLES = {
    "last": "Last",
    "average": "Average",
    "s_adapt": "S_adapt",
    "s_last": "S_last",
    "s_cde": "S_CDE",
    "forgetting": "Forgetting",
    "worst_forgetting": "Forgetting (from best)",
    "gap": "Gap",
    "last:sigma": "σ",
    "average:sigma": "σ",
    "transfer": "Transfer",
    "average_x_tail": "Average (all cells)",
}
SUMMARY = ("last", "average", "s_adapt", "s_last", "s_cde", "forgetting", "worst_forgetting", "gap", "last:sigma")
MISSING = "–"


@dataclass(frozen=True)
class ResultTable:
    """A table: one row per method, one column per number."""

    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Value, ...]], ...]

    @property
    def notes(self) -> list[str]:
        """Reasons against published numbers that the table shows, in the order in which they appear."""
        found = (v.published.error for _, values in self.rows for v in values if v.published and v.published.error)
        return list(dict.fromkeys(found))

    def header(self, column: str) -> str:
        """Return the title of a column."""
        return TITLES.get(column, column.partition(":")[2])


def tables_of(group: Group) -> list[ResultTable]:
    """Return the summary of a group, and the Last and Average accuracy of each domain."""
    extra = ("transfer", "average_x_tail") if group.protocol == "X-TAIL" else ()
    seeds = sorted({run.seed for runs in group.runs.values() for run in runs})
    caption = (
        f"Protocol {group.protocol}. Accuracy in percent, mean and 95% t interval over {len(seeds)} "
        f"seed{'s' if len(seeds) != 1 else ''}. Learned in the order {', '.join(group.domains)}."
    )
    short = max(run.shortages for runs in group.runs.values() for run in runs)
    if short:
        caption += f" Up to {short} classes had fewer images than shots."
    if all(np.isnan(run.Z).all() for runs in group.runs.values() for run in runs):
        caption += " No text embeddings: images alone, and what needs zero-shot accuracy is missing."
    parts = [
        ("summary", (*SUMMARY, *extra)),
        ("Last accuracy", (*(f"last:{domain}" for domain in group.domains), "last", "last:sigma")),
        ("Average accuracy", (*(f"average:{domain}" for domain in group.domains), "average", "average:sigma")),
    ]
    return [_table(group, f"{group.name}: {title}", caption, columns) for title, columns in parts]


def _table(group: Group, title: str, caption: str, columns: tuple[str, ...]) -> ResultTable:
    by_column = [_ranked(column, [group.value(method, column) for method in group.runs]) for column in columns]
    rows = zip(group.runs, zip(*by_column, strict=True), strict=True)
    return ResultTable(title, caption, columns, tuple(rows))


def _ranked(column: str, values: Sequence[Value]) -> list[Value]:
    """Mark the best and the second best mean, as printed; equals share a mark."""
    known = {round(value.mean, 2) for value in values if not np.isnan(value.mean)}
    if column in UNRANKED or len(known) < 2:
        return list(values)
    places = sorted(known, reverse=column not in LOWER_IS_BETTER)
    marks = {places[0]: "best", places[1]: "second"}
    return [replace(value, rank=marks.get(round(value.mean, 2), "")) for value in values]


def number(mean: float, interval: float, pm: str = " ± ") -> str:
    """Return a mean with its interval as text.

    >>> number(63.504, 0.731), number(63.5, float("nan")), number(float("nan"), float("nan"))
    ('63.50 ± 0.73', '63.50', '–')
    """
    if np.isnan(mean):
        return MISSING
    return f"{mean:.2f}" if np.isnan(interval) else f"{mean:.2f}{pm}{interval:.2f}"


Marks = dict[str, Callable[[str], str]]


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


def markdown(table: ResultTable) -> str:
    """Return the table in Markdown."""
    marks: Marks = {"best": "**{}**".format, "second": "<u>{}</u>".format, "published": "<br>{}".format}
    lines = [["method", *map(table.header, table.columns)], ["---"] * (len(table.columns) + 1), *_grid(table, marks)]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    notes = "".join(f"\n[{place}] {note}" for place, note in enumerate(table.notes, 1))
    return f"### {table.title}\n\n{table.caption}\n\n{body}\n{notes}\n"


def _tex(text: str) -> str:
    for plain, escaped in {"_": r"\_", "%": r"\%", "σ": r"$\sigma$", "–": "--", "&": r"\&"}.items():
        text = text.replace(plain, escaped)
    return text


def latex(table: ResultTable) -> str:
    """Return the table as a LaTeX table environment."""
    marks: Marks = {"best": r"\textbf{{{}}}".format, "second": r"\underline{{{}}}".format, "published": " ({})".format}
    lines = [[_tex(text) for text in ("method", *map(table.header, table.columns))]]
    lines += [[_tex(row[0]), *(cell.replace("–", "--") for cell in row[1:])] for row in _grid(table, marks, r"$\pm$")]
    head, *body = (" & ".join(line) + r" \\" for line in lines)
    notes = " ".join(f"[{place}] {note}" for place, note in enumerate(table.notes, 1))
    return "\n".join(
        (
            r"\begin{table}",
            rf"\caption{{{_tex(f'{table.title}. {table.caption} {notes}'.strip())}}}",
            rf"\begin{{tabular}}{{l{'c' * len(table.columns)}}}",
            r"\hline",
            head,
            r"\hline",
            *body,
            r"\hline",
            r"\end{tabular}",
            r"\end{table}",
            "",
        )
    )


def csv_rows(groups: Sequence[Group]) -> str:
    """Return every number of every table as CSV: setting, order, protocol, method, column, ours and published."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = ["setting", "order", "protocol", "method", "column", "mean", "interval", "seeds"]
    writer.writerow([*head, "published", "published_interval", "published_error"])
    for group in groups:
        columns = dict.fromkeys(column for table in tables_of(group) for column in table.columns)
        for method in group.runs:
            for column in columns:
                value = group.value(method, column)
                printed = value.published
                theirs = (
                    ["", "", ""]
                    if printed is None
                    else [_plain(printed.value), _plain(printed.interval), printed.error]
                )
                ours = [_plain(value.mean), _plain(value.interval), value.seeds]
                writer.writerow([group.setting, group.order, group.protocol, method, column, *ours, *theirs])
    return out.getvalue()


def _plain(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4f}"


def html_table(table: ResultTable) -> str:
    """Return the table as HTML."""
    marks: Marks = {
        "best": "<b>{}</b>".format,
        "second": "<u>{}</u>".format,
        "published": '<br><span class="paper">{}</span>'.format,
    }
    head = "".join(f"<th>{html.escape(text)}</th>" for text in ("method", *map(table.header, table.columns)))
    body = "".join(
        f"<tr><th>{html.escape(name)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        for name, *cells in _grid(table, marks)
    )
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in table.notes)
    listed = f'<ol class="notes">{notes}</ol>' if notes else ""
    return (
        f"<figure><figcaption><b>{html.escape(table.title)}</b><br>{html.escape(table.caption)}</figcaption>"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{listed}</figure>'
    )
