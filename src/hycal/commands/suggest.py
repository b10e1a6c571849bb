"""`hycal suggest` and `hycal discover`: which images of a pile to label next, and groups among unknown ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from hycal.commands import _options as opt
from hycal.commands._inputs import EncoderChoice, check_some_share, new_project
from hycal.commands._output import (
    class_text,
    confirm,
    plural,
    print_json,
    print_line,
    print_receipt,
    print_skipped,
    report_errors,
    skipped_json,
)
from hycal.commands._pile import MaybeModel, Pile, PileFolder, classifier_of, open_pile, project_at
from hycal.errors import HyCalError
from hycal.escaping import csv_line
from hycal.storage.atomic import write_whole

if TYPE_CHECKING:
    from hycal.pile.discovery import ImageGroup
    from hycal.project import Project


@report_errors
def suggest_command(
    model: MaybeModel,
    folder: PileFolder,
    most: Annotated[int, typer.Option(min=1, help="How many images to suggest.")] = 20,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV: file, an empty label to fill in, a guess.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the CSV to a new file, such as FOLDER/labels.csv.")] = None,
    as_json: opt.Json = False,
    encoder: opt.ModelEncoder = None,
    weights: opt.Weights = None,
    cache: opt.CacheFolder = None,
    quiet: opt.Quiet = False,
) -> None:
    """Say which images of a folder to label next, the most useful first.

    Without a model, these are the typical images of the parts of the pile. With one, they stand for what the model
    doubts or does not know. An image that was learned, and its near-duplicates, are not suggested again. The same pile
    and model give the same suggestions.

    Label them with `hycal correct`, by moving them into class folders for `hycal learn`, or in a table: fill in the
    labels of --out and let `hycal learn` read the file. A guess may be copied as it is; the classes of a new domain
    get --domain.

    Example: hycal suggest birds.hycal pile --out pile/labels.csv; hycal learn birds.hycal pile/labels.csv --domain bird
    """
    from hycal.pile.suggestion import suggest  # here, so that --help does not wait for it

    if as_json and as_csv:
        raise HyCalError("--json and --csv exclude each other. Choose one.")
    if out is not None and out.exists():
        raise HyCalError(f"{out} is there already, perhaps with labels, so it is not replaced. Choose another name.")
    project = project_at(model)
    pile = open_pile(project, folder, EncoderChoice(encoder, weights, cache), quiet=quiet)
    classifier = classifier_of(project)
    chosen = suggest(pile.rows, most, classifier).tolist()
    found = _guesses(pile, chosen, classifier)
    if as_json:
        print_json({"suggestions": found, "images": len(pile.files), "skipped": skipped_json(pile.skipped)})
        return
    print_skipped(pile.skipped)
    if project is not None and not found:
        known = f"{sum(key in project.state.label_of for key in pile.keys):,} of {len(pile.files):,}"
        why = f"every image was learned ({known}), or is a near-duplicate of a learned one"
        print_line(Console(stderr=True), f"nothing to label: {why}")
    if as_csv or (found and out is not None):
        _give_table(found, out)
        return
    classes = 0 if project is None else len(project.state.labels)
    for item in found:
        guess = "" if item["guess"] is None else f": {class_text(item['guess'], item['probability'], classes)}?"
        print_line(Console(), f"{folder / item['file']}{guess}")
    if found and not quiet:
        print_line(Console(stderr=True), f"label these {plural(len(found), 'image')} of {len(pile.files):,} next")


def _give_table(found: list[dict[str, Any]], out: Path | None) -> None:
    """Print the suggestions as CSV, or write them to a file."""
    rows = [[item["file"], "", item["guess"] or "", item["probability"] or ""] for item in found]
    lines = [csv_line(row) for row in (["file", "label", "guess", "probability"], *rows)]
    if out is None:
        for line in lines:
            typer.echo(line)
        return
    write_whole(out, "".join(f"{line}\r\n" for line in lines).encode())
    confirm(f"{out}: {plural(len(found), 'image')}; fill in the column label, then `hycal learn` reads it")


def _guesses(pile: Pile, chosen: list[int], classifier: Any) -> list[dict[str, Any]]:
    """Return each file with the best class of the model, if there is one."""
    items: list[dict[str, Any]] = [{"file": pile.files[row], "guess": None, "probability": None} for row in chosen]
    if classifier is not None and chosen:
        chances = classifier.predict_proba(pile.rows[chosen])
        for item, own in zip(items, chances, strict=True):
            item |= {"guess": str(classifier.classes_[own.argmax()]), "probability": round(float(own.max()), 6)}
    return items


@report_errors
def discover_command(
    model: MaybeModel,
    folder: PileFolder,
    names: Annotated[
        list[str] | None, typer.Option("--name", metavar="GROUP=LABEL", help="Learn a group as a class: 0=bird/heron.")
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="How many typical images to show of each group.")] = 5,
    error: Annotated[
        float,
        typer.Option(callback=check_some_share, help="Share of images of learned classes that may seem unknown."),
    ] = 0.05,
    encoder: opt.ModelEncoder = None,
    weights: opt.Weights = None,
    cache: opt.CacheFolder = None,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Show groups among the images that fit no learned class, each with its most typical images.

    The number of groups is found. Without a model, all images are grouped, and --name makes the model. The number
    behind "alike" is the mean cosine of two images of the group: the nearer to 1, the more alike.

    Look at the images of a group; if they show one thing, --name teaches it: all images of the group are learned. The
    same model and folder give the same groups, so the numbers hold until something is learned. `hycal undo` takes it
    back.

    Example: hycal discover photos.hycal pile --name 0=bird/heron --name 2=bird/gull
    """
    from hycal.pile.discovery import describe_groups, discover

    wanted = _wanted(names or [])
    project = project_at(model)
    if project is None and wanted:
        project, _ = new_project(model, encoder, weights)
    pile = open_pile(project, folder, EncoderChoice(encoder, weights, cache), quiet=quiet)
    groups = describe_groups(pile.rows, discover(pile.rows, classifier_of(project), error=error))
    if wanted and project is not None:
        _teach(project, pile, groups, wanted, as_json=as_json)
        return
    if as_json:
        found = [
            {"group": group.number, "alike": group.similarity, "files": [pile.files[row] for row in group.rows]}
            for group in groups
        ]
        print_json({"groups": found, "images": len(pile.files), "skipped": skipped_json(pile.skipped)})
        return
    print_skipped(pile.skipped)
    for group in groups:
        shown = ", ".join(str(folder / pile.files[row]) for row in group.rows[:most])
        print_line(
            Console(),
            f"group {group.number}: {plural(len(group.rows), 'image')}, alike {group.similarity:.2f}; typical: {shown}",
        )
    inside = sum(len(group.rows) for group in groups)
    if not groups:
        print_line(Console(stderr=True), "no group: too few images that fit no learned class are alike")
    print_line(Console(), f"{plural(len(groups), 'group')} of {inside:,} of {plural(len(pile.files), 'image')}")


def _wanted(names: list[str]) -> dict[int, str]:
    from hycal.project.labels import check_class_name

    found: dict[int, str] = {}
    for name in names:
        number, equals, label = name.partition("=")
        if not equals or not number.isdecimal():
            raise typer.BadParameter(
                f"{name!r}; expected GROUP=DOMAIN/CLASS, such as 0=bird/heron", param_hint="--name"
            )
        check_class_name(label)
        found[int(number)] = label
    return found


def _teach(project: Project, pile: Pile, groups: list[ImageGroup], wanted: dict[int, str], *, as_json: bool) -> None:
    """Learn groups as classes, in one step."""
    from hycal.project.learner import Learner

    missing = [number for number in wanted if number >= len(groups)]
    if missing:
        raise HyCalError(
            f"There is no group {missing[0]}; there are {len(groups)}, numbered from 0. Nothing was changed."
        )
    chosen = [(row, label) for number, label in wanted.items() for row in groups[number].rows]
    learner = Learner(project, pile.encoder)
    embedded = learner.embed([pile.source(row) for row, _ in chosen], known=project.state.label_of)
    receipt = learner.learn(embedded.labelled([label for _, label in chosen]))
    print_receipt(project, receipt, as_json=as_json)
