"""`hycal advise`: weak classes, near-duplicates and doubtful images of a model, by cross-validation on its images."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from hycal.commands import _options as opt
from hycal.commands._encoder_trials import describe_trials, measure_encoders, no_other_encoder, other_encoders
from hycal.commands._inputs import EncoderChoice
from hycal.commands._output import (
    FOUND_SOMETHING,
    percent,
    plain,
    print_json,
    print_line,
    print_table,
    report_errors,
    score_json,
    working,
)
from hycal.project import Project, State
from hycal.project.advice import ENCODER_HINT, Advice, Suspect, advise
from hycal.project.encoder_trials import EncoderTrial
from hycal.project.examples import Example
from hycal.uncertainty.cross_validation import Estimate

_SHOWN = 10
_NAMED = 5  # files of a group of near-duplicates


@report_errors
def advise_command(
    model: opt.Model,
    images: Annotated[
        Path | None, typer.Option("--images", help="The learned folder: measure other encoders on a sample of it too.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="End with code 3 if any image looks mislabelled.")] = False,
    cache: opt.CacheFolder = None,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Advise on a model from its own images, each judged by a model that never saw it.

    Gives the accuracy to expect on new images as a 90% interval. Says for each class whether it has enough images,
    which images are near-duplicates (they are judged together), which classes are taken for one another, which images
    look mislabelled, and what would help. Nothing is needed but the model. A model keeps no images: with --images,
    up to 200 of those in the learned folder say whether another installed encoder would be better.

    Example: hycal advise photos.hycal
    """
    project = Project(model)
    with working("judging each image by a model without it", quiet=quiet):
        found = advise(project.state)
    trials: list[EncoderTrial] = []
    if images is not None:
        trials, measured = _try_encoders(project.state, images, cache, quiet=quiet)
        found = replace(found, hints=(*(hint for hint in found.hints if hint != ENCODER_HINT), *measured))
    if as_json:
        print_json(_advice_json(found) | {"encoders": [asdict(trial) for trial in trials]})
    else:
        _show_advice(found)
    if strict and found.suspects:
        raise typer.Exit(FOUND_SOMETHING)


def _try_encoders(
    state: State, folder: Path, cache: Path | None, *, quiet: bool
) -> tuple[list[EncoderTrial], list[str]]:
    """Measure every other encoder that is installed; return the results, and what they say in sentences."""
    trials = measure_encoders(state, folder, other_encoders(state), EncoderChoice(None, None, cache), quiet=quiet)
    return trials, describe_trials(state, folder, trials) or [no_other_encoder(state)]


def _advice_json(found: Advice) -> dict[str, Any]:
    return {
        "overall": score_json(found.overall) | {"estimate": _estimate_json(found.estimate)},
        "classes": [
            {
                "label": item.label,
                "images": item.shots,
                "distinct_images": item.distinct,
                "left_out": score_json(item.left_out),
                "estimate": _estimate_json(item.estimate),
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
        "near_duplicates": [
            {
                "label": group.label,
                "files": [example.name for example in group.examples],
                "images": [identity.hex() for identity in group.identities],
            }
            for group in found.duplicates
        ],
        "hints": list(found.hints),
    }


def _estimate_json(estimate: Estimate) -> dict[str, Any]:
    accuracy = estimate.accuracy if estimate.total else None
    return {"accuracy": accuracy, "low": estimate.low, "high": estimate.high}


def _show_advice(found: Advice) -> None:
    console = Console()
    if found.overall.total:
        print_line(console, f"estimated accuracy on new images like these: {_range(found.estimate)}")
    else:
        print_line(console, "no class has two images that differ, so nothing can be estimated yet")
    table = Table("class", "images", "leave-one-out", "estimate", "advice", box=None)
    for item in found.classes:
        score, images = percent(item.left_out), f"{item.shots:,}"
        table.add_row(plain(str(item.label)), images, score, _range(item.estimate), plain(item.advice))
    print_table(table)
    for hint in found.hints:
        print_line(console, hint, label="hint")
    for group in found.duplicates[:_SHOWN]:
        names = ", ".join(_name(example) for example in group.examples[:_NAMED])
        more = f" and {len(group.examples) - _NAMED:,} more" if len(group.examples) > _NAMED else ""
        print_line(console, f"near-duplicates of {group.label}, judged as one: {names}{more}")
    _show_rest(console, len(found.duplicates))
    for pair in found.confusions[:_SHOWN]:
        print_line(console, f"{pair.truth} taken for {pair.answer}: {pair.count:,}")
    for suspect in found.suspects[:_SHOWN]:
        _show_suspect(console, suspect)
    _show_rest(console, len(found.suspects))


def _show_rest(console: Console, count: int) -> None:
    if count > _SHOWN:
        print_line(console, f"... and {count - _SHOWN:,} more; --json lists all of them")


def _range(estimate: Estimate) -> str:
    return f"{estimate.low:.0%} to {estimate.high:.0%}" if estimate.total else "-"


def _name(example: Example) -> str:
    return example.name or example.identity.hex()[:12]


def _show_suspect(console: Console, suspect: Suspect) -> None:
    print_line(
        console,
        f"{_name(suspect.example)}: learned as {suspect.label}, looks like {suspect.looks_like} (nearest image of it "
        f"at {suspect.similarity:.3f}, of its own class at {suspect.own_similarity:.3f})",
        label="mislabelled?",
        style="yellow",
    )
