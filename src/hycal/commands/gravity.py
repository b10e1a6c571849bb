"""`hycal gravity`: how often images of one domain are classified into another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from hycal.commands._inputs import EncoderChoice, embed_held_out
from hycal.commands._options import CacheFolder, Force, Json, Model, ModelEncoder, Outside, Quiet, Weights
from hycal.commands._output import plain, print_json, print_line, print_skipped, print_table, report_errors, working
from hycal.storage.atomic import check_replaceable, write_whole

if TYPE_CHECKING:
    from hycal.gravity import Gravity


@report_errors
def gravity_command(
    model: Model,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Labelled images that were not learned: DOMAIN/CLASS/x.jpg, a manifest, or embeddings as .npz.",
        ),
    ],
    outside: Outside = False,
    encoder: ModelEncoder = None,
    weights: Weights = None,
    cache: CacheFolder = None,
    quiet: Quiet = False,
    as_json: Json = False,
    page: Annotated[Path | None, typer.Option("--html", help="HTML page to write, with tables and pictures.")] = None,
    force: Force = False,
) -> None:
    """Show how often images of one domain are classified into another, before and after calibration.

    FOLDER holds images of the model's classes as DOMAIN/CLASS/x.jpg or DOMAIN/test/CLASS/x.jpg, or it is a table of
    `hycal embed`. Images of the training split, and of classes that the model does not know, are left out.

    Example: hycal gravity model.safetensors photos --html gravity.html
    """
    from hycal.gravity import measure_calibration
    from hycal.gravity.page import PAGE_MARK, gravity_page
    from hycal.project import Project
    from hycal.project.inputs import held_out_images

    mark = b"" if force else PAGE_MARK
    if page is not None:
        check_replaceable(page, mark)  # before minutes of work
    console, state = Console(stderr=True), Project(model).state
    inputs = held_out_images(source, state, outside=outside)
    summary = Console(stderr=True, quiet=quiet)
    asked = embed_held_out(inputs, state, EncoderChoice(encoder, weights, cache), summary=summary, quiet=quiet)
    print_skipped((*inputs.left_out.all, *asked.skipped), rest="")
    with working("measuring the pull of each domain", quiet=quiet):
        measured = measure_calibration(state.classifier, asked.rows, asked.labels)
    if page is not None:
        write_whole(page, gravity_page(model.name, measured).encode(), mark=mark)
        print_line(console, f"{page}: the page")
    if as_json:
        print_json({name: one.as_json() for name, one in measured.items()})
        return
    _print_tables(Console(), measured)


def _print_tables(console: Console, measured: Mapping[str, Gravity]) -> None:
    from hycal.gravity.tables import sentence, sheets

    for when, one in measured.items():
        print_line(console, sentence(when, one))
        for sheet in sheets(one):
            table = Table(title=plain(sheet.title), caption=plain(sheet.note), box=None)
            for place, name in enumerate(sheet.head):
                table.add_column(plain(name), justify="right" if place else "left")
            for row in sheet.rows:
                table.add_row(*map(plain, row))
            print_table(table)
