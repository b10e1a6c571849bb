"""`hycal seal`: a small copy of a model, without embeddings of single images."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console

from hycal.commands._options import Json, Model, NewModel
from hycal.commands._output import class_count, print_json, print_line, report_errors
from hycal.project import Project
from hycal.project.sealed import describe, seal


@report_errors
def seal_command(
    model: Model,
    out: NewModel,
    half: Annotated[bool, typer.Option("--half", help="Round numbers to half precision: half the bytes.")] = False,
    as_json: Json = False,
) -> None:
    """Write a copy to share: it answers as the model does, and holds no image, no name of a file and no history.

    Classes keep how many images they had, their mean, and what the method needs of their spread. The copy learns,
    forgets classes and merges. What needs single images, such as undo or another method, only the model itself can do.

    Example: hycal seal photos.hycal --out small.hycal
    """
    source = Project(model)
    reason = source.state.classifier.sealing.reason
    sealed = Project.create(out, seal(source.state), precision="half" if half else "single")
    facts: dict[str, Any] = {
        "model": str(sealed.path),
        "hash": sealed.state.hash,
        "holds": describe(sealed.state),
        "left_out": reason,
        "classes": len(sealed.state.labels),
        "bytes": sealed.path.stat().st_size,
        "bytes_before": source.path.stat().st_size,
    }
    if as_json:
        print_json(facts)
        return
    console = Console()
    print_line(console, f"sealed {class_count(facts['classes'])} in {sealed.path}: {facts['holds']}")
    print_line(console, f"{facts['bytes']:,} bytes; {facts['bytes_before']:,} before")
    if reason:
        print_line(console, reason, label="note", style="yellow")
