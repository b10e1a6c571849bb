"""`hycal evaluate` and `hycal advise`: how good a model is, by a test, and by its own images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hycal.commands._failing import told
from hycal.commands._models import (
    FOUND_SOMETHING,
    CacheFolder,
    EncoderName,
    Json,
    Model,
    Weights,
    embedding_cache,
    encoder_of,
    print_json,
    score_json,
    skipped_json,
    tell_skipped,
)
from hycal.commands._output import say, show_table, shown
from hycal.data.labelled import list_images
from hycal.embedding import Skipped
from hycal.embedding.store import EmbeddingStore
from hycal.embedding.stream import stream
from hycal.encoders.protocol import Encoder
from hycal.errors import HyCalError
from hycal.project import Project, State
from hycal.project.advice import Advice, Suspect, advise
from hycal.project.evaluation import Evaluation, Score, evaluate
from hycal.project.inputs import TO_TEST, Labelled, known_label, labelled
from hycal.validation import Label

_SHOWN = 10


@told
def evaluate_command(
    model: Model,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of class folders, or a .csv or .jsonl manifest.")
    ],
    domain: Annotated[str | None, typer.Option(help="Domain of these classes; by default the folder's name.")] = None,
    encoder: EncoderName = None,
    weights: Weights = None,
    cache: CacheFolder = None,
    strict: Annotated[bool, typer.Option("--strict", help="End with code 3 if any file was skipped.")] = False,
    as_json: Json = False,
) -> None:
    """Test a model on labelled images: accuracy, what is taken for what, and accuracy by images per class.

    The folder is read as by `hycal learn`; of splits, test and val are used. Every learned class is a candidate. An
    image whose class the model does not know is skipped, and said. One that the model learned is a poor test, and said.

    Example: hycal evaluate photos.hycal photos/flowers
    """
    project = Project(model)
    state = project.state
    images, skipped = labelled(list_images(folder), root=folder, domain=domain, splits=TO_TEST)
    known = [(image, known_label(state, image.label)) for image in images]
    skipped += [
        Skipped(image.source.name, f"the model has no class {image.label}") for image, label in known if label is None
    ]
    testable = [(image, label) for image, label in known if label is not None]
    if not testable:
        raise HyCalError(f"None of the {len(images)} images in {folder} belongs to a class of the model.")
    tower = encoder_of(state, encoder, weights)
    with embedding_cache(tower, cache) as store:
        pairs, learned = _answers(state, tower, testable, store, skipped)
    if not pairs:
        raise HyCalError(
            f"None of the {len(testable)} files in {folder} could be read. The last: {skipped[-1].reason}."
        )
    found = evaluate(state, pairs)
    if as_json:
        print_json({**_evaluation_json(found), "learned_before": learned, "skipped": skipped_json(skipped)})
    else:
        tell_skipped(skipped)
        _show_evaluation(found, learned)
    if strict and skipped:
        raise typer.Exit(FOUND_SOMETHING)


def _answers(
    state: State,
    tower: Encoder,
    images: list[tuple[Labelled, Label]],
    store: EmbeddingStore,
    skipped: list[Skipped],
) -> tuple[list[tuple[Label, Label]], int]:
    """Return (truth, answer) of every image that can be read, and how many of them the model has learned."""
    pairs: list[tuple[Label, Label]] = []
    learned = 0
    for item in stream([image.source for image, _ in images], tower, store=store):
        image, truth = images[item.number]
        if item.row is None:
            skipped.append(Skipped(image.source.name, str(item.problem)))
            continue
        (best,) = state.classifier.decision_function(item.row[None]).argmax(axis=1)
        pairs.append((truth, state.labels[int(best)]))
        learned += item.key in state.label_of
    return pairs, learned


@told
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
    say(console, f"accuracy {_percent(found.overall)}")
    if learned:
        say(
            console, f"{learned:,} of these images were learned, so the accuracy flatters", label="note", style="yellow"
        )
    for title, scores in (("domain", found.by_domain), ("images per class", found.by_shots)):
        table = Table(title, "accuracy", box=None)
        for name, score in scores.items():
            table.add_row(escape(shown(name)), _percent(score))
        show_table(table)
    table = Table("class", "learned from", "accuracy", box=None)
    for label, score in found.by_class.items():
        table.add_row(escape(shown(str(label))), f"{found.shots[label]:,}", _percent(score))
    show_table(table)
    for item in found.confusions[:_SHOWN]:
        say(console, f"{item.truth} taken for {item.answer}: {item.count:,}")


def _percent(score: Score) -> str:
    return f"{score.accuracy:.1%} ({score.right:,} of {score.total:,})" if score.total else "-"


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
        say(console, f"estimated accuracy on new images like these: {_percent(found.overall)}")
    else:
        say(console, "no class has two images, so nothing can be estimated yet")
    table = Table("class", "images", "told right unseen", "advice", box=None)
    for item in found.classes:
        table.add_row(
            escape(shown(str(item.label))), f"{item.shots:,}", _percent(item.left_out), escape(shown(item.advice))
        )
    show_table(table)
    for pair in found.confusions[:_SHOWN]:
        say(console, f"{pair.truth} taken for {pair.answer}: {pair.count:,}")
    for suspect in found.suspects[:_SHOWN]:
        _show_suspect(console, suspect)
    if len(found.suspects) > _SHOWN:
        say(console, f"... and {len(found.suspects) - _SHOWN:,} more; --json lists all of them")


def _show_suspect(console: Console, suspect: Suspect) -> None:
    name = suspect.example.name or suspect.example.identity.hex()[:12]
    say(
        console,
        f"{name}: learned as {suspect.label}, looks like {suspect.looks_like} (nearest image of it at "
        f"{suspect.similarity:.3f}, of its own class at {suspect.own_similarity:.3f})",
        label="mislabelled?",
        style="yellow",
    )
