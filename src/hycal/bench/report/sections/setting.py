"""One section for each setting in its own order: accuracy over all domains and by domain, and its figures."""

from __future__ import annotations

from functools import partial

from hycal.bench.report.blocks import Block, Column, FigureBlock, NotRun, ResultTable, Row, Section, make_table
from hycal.bench.report.results import Group, Results, Value
from hycal.bench.report.sections.setting_figures import FIGURES
from hycal.bench.report.tables import FAMILIES, IMBALANCES, run_command
from hycal.bench.settings import DEFAULT_ORDER

_FORGETTING = ("forgetting", "worst_forgetting")
_SHORT = ("last", "average", "s_cde", "forgetting", "ece")
SUMMARY = ("last", "average", "s_adapt", "s_last", "s_cde", *_FORGETTING, "gap", "last:sigma", "ece")
_ECE = "ECE: calibration error of the answers in the end"
_X_TAIL = ("transfer", "average_x_tail")


def settings(results: Results) -> list[Section]:
    """Return the sections of all settings with results, and one for the paper's settings that have none."""
    shown = [group for group in results.groups if group.order == DEFAULT_ORDER and group.methods]
    sections = [_section(group) for group in shown]
    missing: list[Block] = [
        NotRun(f"{head}, {family}", "Not run yet:", (run_command([prefix + name]),))
        for family, prefix in FAMILIES.items()
        for head, name in IMBALANCES.items()
        if results.find(prefix + name) is None
    ]
    return [*sections, Section("missing-settings", "Settings not run", tuple(missing))] if missing else sections


def _section(group: Group) -> Section:
    figures = [
        FigureBlock(f"{group.name}: {title}", caption, partial(draw, group))
        for title, (draw, caption) in FIGURES.items()
    ]
    blocks: list[Block] = [*domain_tables(group), *figures]
    return Section(f"{group.name}.{group.protocol}", f"{group.name} ({group.protocol})", tuple(blocks))


def domain_tables(group: Group) -> list[ResultTable]:
    """Return the summary of a group, and the Last and Average accuracy of each domain."""
    extra = _X_TAIL if group.protocol == "X-TAIL" else ()
    last = (*(f"last:{domain}" for domain in group.domains), "last", "last:sigma", "ece")
    average = (*(f"average:{domain}" for domain in group.domains), "average", "average:sigma", "ece")
    by_domain = f"Protocol {group.protocol}. By domain, in the order of learning; σ over the domains; {_ECE}."
    parts = [
        ("summary", _caption(group), (*SUMMARY, *extra)),
        ("Last accuracy", by_domain, last),
        ("Average accuracy", by_domain, average),
    ]
    zero_shot: Row = ("zero-shot, all names", tuple(group.zero_shot(column) for column in last))
    return [
        make_table(
            f"{group.name}: {title}",
            caption,
            [Column(name, group=group) for name in columns],
            group.methods,
            lambda method, column: _value(group, method, column),
            [zero_shot] if columns == last and group.has_text else [],
        )
        for title, caption, columns in parts
    ]


def short_table(group: Group) -> ResultTable:
    """Return the few numbers of a group that fit a terminal, of every method that was run."""
    columns = [Column(name, group=group) for name in _SHORT]
    return make_table(
        group.name, _caption(group), columns, list(group.runs), lambda method, column: _value(group, method, column)
    )


def _value(group: Group, method: str, column: Column) -> Value:
    """Return a number with the published one: that of the paper's table of this setting, or of this order."""
    table = group.published_name if group.order == DEFAULT_ORDER else "random-orders-domains"
    return group.value(method, column.name, table)


def _caption(group: Group) -> str:
    runs = [run for method in (group.methods or group.runs) for run in group.runs[method]]
    seeds = len({run.seed for run in runs})
    caption = (
        f"Protocol {group.protocol}. Accuracy in percent, mean and 95% t interval over {seeds} "
        f"seed{'s' if seeds != 1 else ''}; {_ECE}. Learned in the order {', '.join(group.domains)}."
    )
    short = max(run.shortages for run in runs)
    if short:
        caption += f" Up to {short} classes had fewer images than shots."
    mixed = {name for run in runs for name, version in run.versions.items() if version != runs[0].versions.get(name)}
    if mixed:
        caption += f" Not all runs were made with the same version of {', '.join(sorted(mixed))}."
    if not group.has_text:
        caption += " No text embeddings: images alone."
    return caption
