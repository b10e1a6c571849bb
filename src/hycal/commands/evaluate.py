"""`hycal evaluate`: the accuracy of a model on labelled images."""

from __future__ import annotations

from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from hycal.commands._inputs import embedding_cache, encoder_of
from hycal.commands._options import CacheFolder, Domain, Json, LabelledFolder, Model, ModelEncoder, StrictSkips, Weights
from hycal.commands._output import (
    FOUND_SOMETHING,
    percent,
    plain,
    print_json,
    print_line,
    print_skipped,
    print_table,
    report_errors,
    score_json,
    skipped_json,
)
from hycal.data.labelled import list_images
from hycal.embedding import Skipped
from hycal.embedding.store import EmbeddingStore
from hycal.embedding.stream import stream
from hycal.encoders.protocol import Encoder
from hycal.errors import HyCalError
from hycal.project import Project, State
from hycal.project.evaluation import Evaluation, evaluate
from hycal.project.inputs import TO_TEST, Labelled, known_label, labelled
from hycal.validation import Label

_SHOWN = 10


@report_errors
def evaluate_command(
    model: Model,
    folder: LabelledFolder,
    domain: Domain = None,
    encoder: ModelEncoder = None,
    weights: Weights = None,
    cache: CacheFolder = None,
    strict: StrictSkips = False,
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
        print_skipped(skipped)
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
    if learned:
        print_line(
            console, f"{learned:,} of these images were learned, so the accuracy flatters", label="note", style="yellow"
        )
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
