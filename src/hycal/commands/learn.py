"""`hycal learn` and `hycal correct`: images into a model."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hycal.commands._inputs import check_method, embedding_cache, new_project
from hycal.commands._options import (
    CacheFolder,
    Domain,
    Json,
    LabelledFolder,
    Model,
    ModelEncoder,
    NewMethod,
    Outside,
    StrictSkips,
    Weights,
)
from hycal.commands._output import FOUND_SOMETHING, embedding_progress, print_line, print_receipt, report_errors
from hycal.embedding.sources import ImageFile
from hycal.encoders.encoder import Encoder
from hycal.errors import HyCalError
from hycal.project import Project, Receipt
from hycal.project.encoder import encoder_of
from hycal.project.inputs import LabelledImage, to_learn
from hycal.project.labels import check_class_name
from hycal.project.learner import Learner


@report_errors
def learn_command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model's file; made if there is none yet.")],
    folder: LabelledFolder,
    domain: Domain = None,
    outside: Outside = False,
    encoder: ModelEncoder = None,
    method: NewMethod = None,
    weights: Weights = None,
    cache: CacheFolder = None,
    thumbnails: Annotated[bool, typer.Option(help="Keep a thumbnail of each image in the model, up to 3 kB.")] = True,
    strict: StrictSkips = False,
    as_json: Json = False,
) -> None:
    """Learn the classes in a folder: new ones appear, known ones grow.

    FOLDER holds one folder of images for each class: FOLDER/rose/1.jpg becomes the class FOLDER/rose. Two levels of
    folders are domain and class. Folders called train and test are splits; only train is learned. The first call makes
    the model. An image that the model knows already, by its content, is not counted twice.

    Ends with 0 when all is done, 1 when nothing could be, 2 for a wrong option, 130 when interrupted.

    Example: hycal learn photos.hycal photos/flowers --domain flower
    """
    images, left_out = to_learn(folder, domain=domain, outside=outside)
    if not images:
        raise HyCalError(
            f"{folder} has no images in class folders. Put the images of each class in a folder named after the class: "
            f"{folder / 'cat' / '1.jpg'}."
        )
    project, tower = _open(model, encoder, weights, method)
    receipt = _learn(Learner(project, tower), tower, images, cache, thumbnails)
    receipt = replace(receipt, skipped=(*left_out.all, *receipt.skipped))
    print_receipt(project, receipt, as_json=as_json)
    if strict and receipt.skipped:
        raise typer.Exit(FOUND_SOMETHING)


@report_errors
def correct_command(
    model: Model,
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="An image file.")],
    label: Annotated[str, typer.Argument(metavar="LABEL", help="What it shows, as domain/class.")],
    encoder: ModelEncoder = None,
    weights: Weights = None,
    as_json: Json = False,
) -> None:
    """Say what one image shows: it is learned as LABEL, and no longer as anything else.

    Example: hycal correct photos.hycal photos/new/7.jpg flower/tulip
    """
    project = Project(model)
    if label not in project.state.classes:
        check_class_name(label)  # before the encoder is loaded
    learner = Learner(project, encoder_of(project.state, encoder, weights))
    embedded = learner.embed([ImageFile(image)])
    if not embedded.examples:
        raise HyCalError(f"{image} cannot be used: {embedded.skipped[0].reason}.")
    print_receipt(project, learner.correct(embedded.examples[0], label), as_json=as_json)


def _open(path: Path, encoder: str | None, weights: Path | None, method: str | None) -> tuple[Project, Encoder]:
    if not path.exists():
        return new_project(path, encoder, weights, method=method)
    project = Project(path)
    check_method(project, method)
    return project, encoder_of(project.state, encoder, weights)


def _learn(
    learner: Learner, tower: Encoder, images: list[LabelledImage], cache: Path | None, thumbnails: bool
) -> Receipt:
    began = time.monotonic()
    console = Console(stderr=True)
    with embedding_cache(tower, cache) as store, embedding_progress(console, total=len(images)) as watch:
        embedded = learner.embed(
            [image.source for image in images],
            names=[image.name for image in images],
            thumbnails=thumbnails,
            known=learner.project.state.label_of,
            store=store,
            watch=watch,
        )
    if not embedded.examples:
        reason = embedded.skipped[0]
        raise HyCalError(f"None of the {len(images)} files can be used. The first: {reason.name}: {reason.reason}.")
    ready = time.monotonic()
    receipt = learner.learn(embedded.labelled([image.label for image in images]))
    print_line(
        console,
        f"{len(images):,} files embedded with {tower.name} in {ready - began:.1f} s, "
        f"learned in {time.monotonic() - ready:.2f} s",
    )
    return replace(receipt, skipped=(*embedded.skipped, *receipt.skipped))
