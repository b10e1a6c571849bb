"""`hycal evaluate` and `hycal gravity`: a model on labelled images, its accuracy and how domains pull at each other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from hycal.commands import _options as opt
from hycal.commands._inputs import EncoderChoice, embed_held_out, open_project
from hycal.commands._output import (
    FOUND_SOMETHING,
    counting,
    percent,
    plain,
    print_json,
    print_line,
    print_skipped,
    print_table,
    report_errors,
    score_json,
    skipped_json,
    working,
)
from hycal.storage.atomic import check_replaceable, write_whole

if TYPE_CHECKING:
    from hycal.gravity import Gravity
    from hycal.project.evaluation import Evaluation

_SHOWN = 10


@report_errors
def evaluate_command(
    model: opt.Model,
    folder: opt.LabelledFolder,
    domain: opt.Domain = None,
    outside: opt.Outside = False,
    encoder: opt.ModelEncoder = None,
    weights: opt.Weights = None,
    cache: opt.CacheFolder = None,
    quiet: opt.Quiet = False,
    strict: opt.StrictSkips = False,
    as_json: opt.Json = False,
) -> None:
    """Test a model on labelled images: accuracy, what is taken for what, and accuracy by images per class.

    The folder is read as by `hycal learn`; of splits, test and val are used. Every learned class is a candidate. Images
    of unknown classes are skipped and listed. A note says how many of the images the model learned.

    Example: hycal evaluate photos.hycal photos/flowers
    """
    from hycal.project.evaluation import best_labels, evaluate  # here, so that --help does not wait for it
    from hycal.project.inputs import held_out_images

    state = open_project(model).state
    inputs = held_out_images(folder, state, domain=domain, outside=outside)
    asked = embed_held_out(inputs, state, EncoderChoice(encoder, weights, cache), summary=None, quiet=quiet)
    with counting("scoring", len(asked.rows), quiet=quiet) as watch:
        answers = best_labels(state, asked.rows, watch=watch)
    found = evaluate(state, zip(asked.labels, answers, strict=True))
    skipped = (*inputs.left_out.all, *asked.skipped)
    if as_json:
        print_json({**_evaluation_json(found), "learned_before": asked.learned, "skipped": skipped_json(skipped)})
    else:
        print_skipped(skipped)
        _show_evaluation(found, asked.learned)
    if strict and skipped:
        raise typer.Exit(FOUND_SOMETHING)


def _evaluation_json(found: Evaluation) -> dict[str, Any]:
    return {
        "overall": score_json(found.overall),
        "domains": {name: score_json(score) for name, score in found.by_domain.items()},
        "shots": {name: score_json(score) for name, score in found.by_shots.items()},
        "classes": {
            str(label): {**score_json(score), "images": found.shots[label]} for label, score in found.by_class.items()
        },
        "confusions": [vars(item) for item in found.confusions],
    }


def _show_evaluation(found: Evaluation, learned: int) -> None:
    console = Console()
    print_line(console, f"accuracy {percent(found.overall)}")
    _note_learned(console, learned, "the accuracy is too high")
    for title, scores in (("domain", found.by_domain), ("images per class", found.by_shots)):
        table = Table(title, "accuracy", box=None)
        for name, score in scores.items():
            table.add_row(plain(name), percent(score))
        print_table(table)
    table = Table("class", "learned from", "accuracy", box=None)
    for label, score in found.by_class.items():
        table.add_row(plain(str(label)), f"{found.shots[label]:,}", percent(score))
    print_table(table)
    for item in found.confusions[:_SHOWN]:
        print_line(console, f"{item.truth} taken for {item.answer}: {item.count:,}")


def _note_learned(console: Console, learned: int, effect: str) -> None:
    if learned:
        print_line(console, f"{learned:,} of these images were learned, so {effect}", label="note", style="yellow")


@report_errors
def gravity_command(
    model: opt.Model,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Labelled images that were not learned: DOMAIN/CLASS/x.jpg, a manifest, or embeddings as .npz.",
        ),
    ],
    outside: opt.Outside = False,
    encoder: opt.ModelEncoder = None,
    weights: opt.Weights = None,
    cache: opt.CacheFolder = None,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
    page: Annotated[Path | None, typer.Option("--html", help="HTML page to write, with tables and pictures.")] = None,
    force: opt.Force = False,
) -> None:
    """Show how often images of one domain are classified into another, before and after calibration.

    FOLDER holds images of the model's classes as DOMAIN/CLASS/x.jpg or DOMAIN/test/CLASS/x.jpg, or it is a table of
    `hycal embed`. Images of the training split, and of classes that the model does not know, are left out.

    Example: hycal gravity model.safetensors photos --html gravity.html
    """
    from hycal.gravity import measure_calibration
    from hycal.gravity.page import PAGE_MARK, gravity_page
    from hycal.project.inputs import held_out_images

    mark = b"" if force else PAGE_MARK
    if page is not None:
        check_replaceable(page, mark)  # before minutes of work
    console, state = Console(stderr=True), open_project(model).state
    inputs = held_out_images(source, state, outside=outside)
    summary = Console(stderr=True, quiet=quiet)
    asked = embed_held_out(inputs, state, EncoderChoice(encoder, weights, cache), summary=summary, quiet=quiet)
    print_skipped((*inputs.left_out.all, *asked.skipped), rest="")
    _note_learned(console, asked.learned, "fewer of them cross between domains than new ones would")
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
