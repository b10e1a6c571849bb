"""`hycal learn` and `hycal correct`: images into a model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from hycal.commands import _options as opt
from hycal.commands._inputs import (
    DEFAULT_ENCODER,
    check_method,
    check_names,
    embedded_before,
    embedding_cache,
    model_encoder,
    new_project,
    open_project,
    rows_before,
)
from hycal.commands._output import (
    FOUND_SOMETHING,
    ask_or_stop,
    class_count,
    embedding_progress,
    is_watched,
    plural,
    print_json,
    print_line,
    print_receipt,
    print_skipped,
    report_errors,
    skipped_json,
    working,
)
from hycal.errors import HyCalError

if TYPE_CHECKING:
    from hycal.encoders.encoder import Encoder
    from hycal.project import Project, Receipt
    from hycal.project.inputs import LabelledImage, LeftOut
    from hycal.project.learner import Learner

_SHOWN = 30  # classes of a domain


@report_errors
def learn_command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model's file; made if there is none yet.")],
    folder: opt.LabelledFolder,
    domain: opt.Domain = None,
    images: opt.LabelledImages = None,
    outside: opt.Outside = False,
    encoder: opt.ModelEncoder = None,
    augment: opt.Augment = None,
    method: opt.NewMethod = None,
    weights: opt.Weights = None,
    cache: opt.CacheFolder = None,
    thumbnails: Annotated[bool, typer.Option(help="Keep a thumbnail of each image in the model, up to 3 kB.")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be learned, and learn nothing.")] = False,
    yes: opt.Yes = False,
    quiet: opt.Quiet = False,
    strict: opt.StrictSkips = False,
    as_json: opt.Json = False,
) -> None:
    """Learn the classes in a folder: new ones appear, known ones grow.

    FOLDER holds one folder of images for each class: FOLDER/rose/1.jpg becomes the class FOLDER/rose. Two levels of
    folders are domain and class. Folders called train and test, above or below these, are splits; only train is
    learned. Links to folders are followed. What was found is printed first, and where it is doubtful a person is asked.
    The first call makes the model. An image that the model knows already, by its content, is not counted twice. FOLDER
    may also be a file of labels (CSV, JSON of Label Studio or COCO, XML of CVAT), with its images beside it or in
    --images; predictions in it are not learned. A label such as flower/rose is that class if the model has the domain;
    other labels of a table without domains get --domain, or the name of the file.

    Ends with 0 when all is done, 1 when nothing could be, 2 for a wrong option, 130 when interrupted.

    Example: hycal learn photos.hycal photos/flowers --domain flower
    """
    from hycal.encoders.catalog import augmented_name  # here, so that --help does not wait for it
    from hycal.project.inputs import count_by_class, doubts, doubts_of_names, to_learn
    from hycal.project.learner import Learner

    project = open_project(model) if model.exists() else None
    state = None if project is None else project.state
    if augment is not None:
        encoder = augmented_name(encoder or (DEFAULT_ENCODER if state is None else state.space.name), augment)
    check_names(encoder, method)
    labelled, left_out = to_learn(folder, domain=domain, outside=outside, images=images, state=state)
    if not labelled:
        raise HyCalError(_no_images(folder, left_out))
    unnamed = state if domain is None else None
    doubtful = doubts(labelled) if folder.is_dir() else doubts_of_names(labelled, folder, unnamed)
    if dry_run and as_json:
        skipped = skipped_json(left_out.all)
        print_json({"classes": count_by_class(labelled), "doubts": doubtful, "skipped": skipped})
        return
    if not quiet or dry_run or (doubtful and not yes and is_watched()):
        _show_classes(folder, labelled, doubtful)
    if dry_run:
        print_skipped(left_out.all)
        return
    if doubtful and not yes:
        ask_or_stop("Are these the classes to learn?")
    with working("loading the encoder", quiet=quiet):
        project, loaded = _with_encoder(project, model, encoder, weights, method)
    receipt = _learn(Learner(project, loaded), loaded, labelled, cache, thumbnails, quiet=quiet)
    receipt = replace(receipt, skipped=(*left_out.all, *receipt.skipped))
    print_receipt(project, receipt, as_json=as_json)
    if strict and receipt.skipped:
        raise typer.Exit(FOUND_SOMETHING)


@report_errors
def correct_command(
    model: opt.Model,
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="An image file.")],
    label: Annotated[str, typer.Argument(metavar="LABEL", help="What it shows: a class; a new one as domain/class.")],
    encoder: opt.ModelEncoder = None,
    weights: opt.Weights = None,
    as_json: opt.Json = False,
) -> None:
    """Say what one image shows: it is learned as LABEL, and no longer as anything else.

    The class alone is enough where only one domain has it. A new class needs its domain.

    Example: hycal correct photos.hycal photos/new/7.jpg flower/tulip
    """
    from hycal.embedding.sources import ImageFile
    from hycal.project.labels import whole_label
    from hycal.project.learner import Learner

    if image.is_dir():
        raise HyCalError(f"{image} is a folder. Name one image, or learn a folder of class folders with `hycal learn`.")
    project = open_project(model)
    label = whole_label(project.state, label, ask=partial(_ask_domain, label) if is_watched() else None)
    learner = Learner(project, model_encoder(project.state, encoder, weights))
    embedded = learner.embed([ImageFile(image)])
    if not embedded.examples:
        raise HyCalError(f"{image} cannot be used: {embedded.skipped[0].reason}.")
    print_receipt(project, learner.correct(embedded.examples[0], label), as_json=as_json)


def _ask_domain(name: str, domains: Sequence[str]) -> str:
    return str(typer.prompt(f"{name} is a new class. Its domain ({', '.join(domains)})", err=True))


def _no_images(source: Path, left_out: LeftOut) -> str:
    if source.is_file():
        reasons = "; ".join(f"{item.name}: {item.reason}" for item in left_out.all[:3])
        return f"No image of {source} can be learned: {reasons}."
    return (
        f"{source} has no images in class folders. Put the images of each class in a folder named after the class: "
        f"{source / 'cat' / '1.jpg'}."
    )


def _with_encoder(
    project: Project | None, path: Path, encoder: str | None, weights: Path | None, method: str | None
) -> tuple[Project, Encoder]:
    if project is None:
        return new_project(path, encoder, weights, method=method)
    check_method(project, method)
    return project, model_encoder(project.state, encoder, weights)


def _show_classes(folder: Path, images: list[LabelledImage], doubtful: list[str]) -> None:
    """Print the classes that were found, domain by domain, and what is doubtful about them, on standard error."""
    from hycal.project.inputs import count_by_class
    from hycal.project.labels import split_label

    console, counts = Console(stderr=True), count_by_class(images)
    found = f"{class_count(len(counts))}, {plural(len(images), 'image')}"
    print_line(console, f"{folder}: {found} to learn")
    for domain in dict.fromkeys(split_label(label)[0] for label in counts):
        named = [f"{name} {counts[label]:,}" for label in counts for own, name in [split_label(label)] if own == domain]
        more = f", ... and {len(named) - _SHOWN:,} more" if len(named) > _SHOWN else ""
        print_line(console, f"  {domain}: {', '.join(named[:_SHOWN])}{more}")
    for doubt in doubtful:
        print_line(console, doubt, label="look", style="yellow")


def _learn(
    learner: Learner,
    loaded: Encoder,
    images: list[LabelledImage],
    cache: Path | None,
    thumbnails: bool,
    *,
    quiet: bool,
) -> Receipt:
    began = time.monotonic()
    console = Console(stderr=True, quiet=quiet)
    with embedding_cache(loaded, cache) as store, embedding_progress(console, total=len(images)) as watch:
        before = rows_before(store)
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
    ready, keys = time.monotonic(), [example.key for example in embedded.examples.values()]
    used, known = embedded_before(loaded, before, keys, embedded.encoded)
    receipt = learner.learn(embedded.labelled([image.label for image in images]))
    print_line(
        console,
        f"{plural(embedded.encoded, 'file')} embedded with {used} in {ready - began:.1f} s, "
        f"{known}, learned in {time.monotonic() - ready:.2f} s",
    )
    return replace(receipt, skipped=(*embedded.skipped, *receipt.skipped))
