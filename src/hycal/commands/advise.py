"""`hycal advise`: weak classes and doubtful images of a model, by leave-one-out on its own images."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from hycal.commands._options import Json, Model
from hycal.commands._output import (
    FOUND_SOMETHING,
    percent,
    plain,
    print_json,
    print_line,
    print_table,
    report_errors,
    score_json,
)
from hycal.project import Project
from hycal.project.advice import Advice, Suspect, advise

_SHOWN = 10


@report_errors
def advise_command(
    model: Model,
    strict: Annotated[bool, typer.Option("--strict", help="End with code 3 if any image looks mislabelled.")] = False,
    as_json: Json = False,
) -> None:
    """Advise on a model from its own images, each judged by the model that never saw it.

    Says for each class whether it has enough images, which classes are taken for one another, and which images look
    mislabelled. Nothing is needed but the model.

    Example: hycal advise photos.hycal
    """
    project = Project(model)
    found = advise(project.state)
    if as_json:
        print_json(_advice_json(found))
    else:
        _show_advice(found)
    if strict and found.suspects:
        raise typer.Exit(FOUND_SOMETHING)


def _advice_json(found: Advice) -> dict[str, Any]:
    return {
        "overall": score_json(found.overall),
        "classes": [
            {
                "label": item.label,
                "images": item.shots,
                "left_out": score_json(item.left_out),
                "taken_for": item.taken_for,
                "advice": item.advice,
            }
            for item in found.classes
        ],
        "confusions": [vars(item) for item in found.confusions],
        "suspects": [
            {
                "label": item.label,
                "looks_like": item.looks_like,
                "file": item.example.name,
                "image": item.example.identity.hex(),
                "similarity": item.similarity,
                "own_similarity": item.own_similarity,
            }
            for item in found.suspects
        ],
    }


def _show_advice(found: Advice) -> None:
    console = Console()
    if found.overall.total:
        print_line(console, f"estimated accuracy on new images like these: {percent(found.overall)}")
    else:
        print_line(console, "no class has two images, so nothing can be estimated yet")
    table = Table("class", "images", "leave-one-out accuracy", "advice", box=None)
    for item in found.classes:
        table.add_row(plain(str(item.label)), f"{item.shots:,}", percent(item.left_out), plain(item.advice))
    print_table(table)
    for pair in found.confusions[:_SHOWN]:
        print_line(console, f"{pair.truth} taken for {pair.answer}: {pair.count:,}")
    for suspect in found.suspects[:_SHOWN]:
        _show_suspect(console, suspect)
    if len(found.suspects) > _SHOWN:
        print_line(console, f"... and {len(found.suspects) - _SHOWN:,} more; --json lists all of them")


def _show_suspect(console: Console, suspect: Suspect) -> None:
    name = suspect.example.name or suspect.example.identity.hex()[:12]
    print_line(
        console,
        f"{name}: learned as {suspect.label}, looks like {suspect.looks_like} (nearest image of it at "
        f"{suspect.similarity:.3f}, of its own class at {suspect.own_similarity:.3f})",
        label="mislabelled?",
        style="yellow",
    )
