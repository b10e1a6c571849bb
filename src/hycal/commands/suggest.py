"""`hycal suggest`: which images of a pile to label next."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console

from hycal.commands._inputs import EncoderChoice
from hycal.commands._options import CacheFolder, Json, ModelEncoder, Quiet, Weights
from hycal.commands._output import plural, print_json, print_line, print_skipped, report_errors, skipped_json
from hycal.commands._pile import MaybeModel, Pile, PileFolder, classifier_of, open_pile, project_at
from hycal.errors import HyCalError
from hycal.escaping import csv_line


@report_errors
def suggest_command(
    model: MaybeModel,
    folder: PileFolder,
    most: Annotated[int, typer.Option(min=1, help="How many images to suggest.")] = 20,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV: file, an empty label to fill in, a guess.")] = False,
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
    labels of --csv and let `hycal learn` read the file.

    Example: hycal suggest photos.hycal pile --most 20 --csv > pile/labels.csv; hycal learn photos.hycal pile/labels.csv
    """
    if as_json and as_csv:
        raise HyCalError("--json and --csv exclude each other. Choose one.")
    project = project_at(model)
    pile = open_pile(project, folder, EncoderChoice(encoder, weights, cache), quiet=quiet)
    from hycal.pile.suggestion import suggest

    classifier = classifier_of(project)
    chosen = suggest(pile.rows, most, classifier).tolist()
    found = _guesses(pile, chosen, classifier)
    if as_json:
        print_json({"suggestions": found, "images": len(pile.files), "skipped": skipped_json(pile.skipped)})
        return
    print_skipped(pile.skipped, rest="; --json lists all of them")
    if as_csv:
        typer.echo(csv_line(["file", "label", "guess", "probability"]))
        for item in found:
            typer.echo(csv_line([item["file"], "", item["guess"] or "", item["probability"] or ""]))
        return
    for item in found:
        guess = "" if item["guess"] is None else f": {item['guess']} {item['probability']:.1%}?"
        print_line(Console(), f"{folder / item['file']}{guess}")
    if not quiet:
        print_line(Console(stderr=True), f"label these {plural(len(found), 'image')} of {len(pile.files):,} next")


def _guesses(pile: Pile, chosen: list[int], classifier: Any) -> list[dict[str, Any]]:
    """Return each file with the best class of the model, if there is one."""
    items: list[dict[str, Any]] = [{"file": pile.files[row], "guess": None, "probability": None} for row in chosen]
    if classifier is not None and chosen:
        chances = classifier.predict_proba(pile.rows[chosen])
        for item, own in zip(items, chances, strict=True):
            item |= {"guess": str(classifier.classes_[own.argmax()]), "probability": round(float(own.max()), 6)}
    return items
