"""`hycal suggest`: which images of a pile to label next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from hycal.commands._inputs import EncoderChoice
from hycal.commands._options import CacheFolder, Json, ModelEncoder, Quiet, Weights
from hycal.commands._output import confirm, plural, print_json, print_line, print_skipped, report_errors, skipped_json
from hycal.commands._pile import MaybeModel, Pile, PileFolder, classifier_of, open_pile, project_at
from hycal.errors import HyCalError
from hycal.escaping import csv_line
from hycal.pile.suggestion import suggest
from hycal.storage.atomic import write_whole


@report_errors
def suggest_command(
    model: MaybeModel,
    folder: PileFolder,
    most: Annotated[int, typer.Option(min=1, help="How many images to suggest.")] = 20,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV: file, an empty label to fill in, a guess.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the CSV to a new file, such as FOLDER/labels.csv.")] = None,
    as_json: Json = False,
    encoder: ModelEncoder = None,
    weights: Weights = None,
    cache: CacheFolder = None,
    quiet: Quiet = False,
) -> None:
    """Say which images of a folder to label next, the most useful first.

    Without a model, these are the typical images of the parts of the pile. With one, they stand for what the model
    doubts or does not know. An image that was learned, and its near-duplicates, are not suggested again. The same pile
    and model give the same suggestions.

    Label them with `hycal correct`, by moving them into class folders for `hycal learn`, or in a table: fill in the
    labels of --out and let `hycal learn` read the file.

    Example: hycal suggest photos.hycal pile --out pile/labels.csv; hycal learn photos.hycal pile/labels.csv
    """
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
    print_skipped(pile.skipped, rest="; --json lists all of them")
    if as_csv or out is not None:
        _give_table(found, out)
        return
    for item in found:
        guess = "" if item["guess"] is None else f": {item['guess']} {item['probability']:.1%}?"
        print_line(Console(), f"{folder / item['file']}{guess}")
    if not quiet:
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
