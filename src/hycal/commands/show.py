"""`hycal classes`, `info`, `diff`: what a model knows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from hycal.commands import _options as opt
from hycal.commands._inputs import open_project
from hycal.commands._output import (
    FOUND_SOMETHING,
    class_count,
    plain,
    plural,
    print_json,
    print_line,
    print_table,
    report_errors,
)

if TYPE_CHECKING:
    from hycal.project import HistoryEntry, Project, State
    from hycal.project.diff import Difference


@report_errors
def classes_command(model: opt.Model, as_json: opt.Json = False) -> None:
    """List the classes of a model, with their domains and how many images each was learned from.

    Example: hycal classes photos.hycal
    """
    state = open_project(model).state
    rows = [(label, state.classes[label].domain, state.classes[label].count) for label in state.labels]
    _print_look_alikes(state)
    if as_json:
        print_json([{"label": label, "domain": domain, "images": shots} for label, domain, shots in rows])
        return
    table = Table("class", "domain", "images", box=None)
    for label, domain, shots in rows:
        table.add_row(plain(str(label)), plain(domain), f"{shots:,}")
    print_table(table)


@report_errors
def info_command(
    model: opt.Model,
    history: Annotated[int, typer.Option(min=0, help="How many of the last changes to show.")] = 10,
    as_json: opt.Json = False,
) -> None:
    """Tell all about a model: its hash, method, encoder, domains, bytes, and what was done to it.

    Example: hycal info photos.hycal
    """
    project = open_project(model)
    _print_look_alikes(project.state)
    facts, entries = _facts(project), project.state.history[-history:] if history else ()
    if as_json:
        print_json({**facts, "history": [_entry(entry) for entry in entries]})
        return
    console = Console()
    for name, value in facts.items():
        if name not in ("domains", "parameters", "look_alikes"):
            print_line(console, f"{name.replace('_', ' '):<10} {value}")
    settings = ", ".join(f"{name}={value}" for name, value in facts["parameters"].items())
    print_line(console, f"{'parameters':<10} {settings}")
    for name, counts in facts["domains"].items():
        print_line(
            console, f"{'domain':<10} {name}: {class_count(counts['classes'])}, {plural(counts['images'], 'image')}"
        )
    for entry in entries:
        undo = " (can be undone)" if entry.undoable else " (can be redone)" if entry.redoable else ""
        print_line(
            console, f"{entry.when} {entry.action}: {entry.what}, {entry.before[:12]} to {entry.after[:12]}{undo}"
        )


@report_errors
def diff_command(
    first: opt.FirstModel,
    second: Annotated[Path, typer.Argument(metavar="B", help="Another model.")],
    strict: Annotated[bool, typer.Option("--strict", help="End with code 3 if the models differ.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Compare two models: settings, classes, and images of each class; of sealed models, their numbers.

    Example: hycal diff photos.hycal photos-before.hycal
    """
    from hycal.project.diff import compare

    found = compare(open_project(first).state, open_project(second).state)
    if as_json:
        print_json(
            {
                "equal": found.equal,
                "settings": found.settings,
                "only_first": found.only_first,
                "only_second": found.only_second,
                "changed": {label: vars(change) for label, change in found.changed.items()},
                "counted": found.counted,
                "same_classes": found.same,
            }
        )
    else:
        _print_difference(found, first, second)
    if strict and not found.equal:
        raise typer.Exit(FOUND_SOMETHING)


def _print_difference(found: Difference, first: Path, second: Path) -> None:
    console = Console()
    for name, (mine, theirs) in found.settings.items():
        print_line(console, f"{name}: {mine} in {first}, {theirs} in {second}")
    for path, only in ((first, found.only_first), (second, found.only_second)):
        for label, count in only.items():
            print_line(console, f"{label}: only in {path}, {plural(count, 'image')}")
    for label, change in found.changed.items():
        print_line(
            console,
            f"{label}: {change.only_first:,} images only in {first}, {change.only_second:,} only in {second}, "
            f"{change.both:,} in both",
        )
    for label, (count, other) in found.counted.items():
        if count != other:
            print_line(console, f"{label}: {plural(count, 'image')} in {first}, {other:,} in {second}")
    if found.counted:
        equal = sum(count == other for count, other in found.counted.values())
        print_line(
            console,
            f"{class_count(equal)} with as many images in both; only numbers of images were compared, as a sealed "
            "model does not know which images it learned",
        )
    if found.equal or found.same or not found.counted:
        same = f"{found.same:,} classes are the same in both"
        print_line(console, "the models are equal" if found.equal else same)


def _print_look_alikes(state: State) -> None:
    from hycal.project.labels import look_alikes

    for names in look_alikes(state):
        both = " and ".join(map(ascii, names))
        line = f"{both} look the same, and are two in this model. Forget one, and learn its images as the other."
        print_line(Console(stderr=True), line, label="note", style="yellow")


def _facts(project: Project) -> dict[str, Any]:
    from hycal.project.labels import look_alikes
    from hycal.project.sealed import describe

    state = project.state
    return {
        "model": str(project.path),
        "hash": state.hash,
        "method": type(state.classifier).__name__,
        "encoder": state.space.name or "unknown",
        "space": state.space.fingerprint or "unknown",
        "dimension": state.space.dimension,
        "classes": len(state.labels),
        "images": state.n_images,
        "bytes": project.path.stat().st_size,
        "sealed": describe(state),
        "undo_steps": sum(entry.undoable for entry in state.history),
        "look_alikes": look_alikes(state),
        "parameters": state.classifier.get_params(deep=False),
        "domains": {domain: _counts(state, domain) for domain in state.domains},
    }


def _counts(state: State, domain: str) -> dict[str, int]:
    labels = state.domains[domain]
    return {"classes": len(labels), "images": sum(state.classes[label].count for label in labels)}


def _entry(entry: HistoryEntry) -> dict[str, Any]:
    fields = ("when", "action", "what", "before", "after")
    return {"change": entry.id, **{name: getattr(entry, name) for name in fields}, "undoable": entry.undoable}
