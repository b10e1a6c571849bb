"""`hycal labels`: what a model, a folder or a file knows about images, in the format of another program."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hycal.commands import _options as opt
from hycal.commands._inputs import EncoderChoice, open_project
from hycal.commands._output import class_count, confirm, plural, print_skipped, report_errors
from hycal.commands._pile import classifier_of, open_pile
from hycal.errors import HyCalError
from hycal.pile.manifest import UNKNOWN, Manifest, read_manifest
from hycal.storage.atomic import check_folder, check_replaceable, write_whole

if TYPE_CHECKING:
    from hycal.data.annotations import ImageLabel
    from hycal.project import Project


@report_errors
def labels_command(
    source: Annotated[
        Path, typer.Argument(metavar="MODEL|FOLDER|FILE", help="A model, a sorted or labelled folder, or labels.")
    ],
    to: Annotated[str, typer.Option("--to", help="label-studio, cvat, coco or csv.")],
    out: Annotated[Path, typer.Option("--out", help="The file to write.")],
    images: Annotated[
        Path | None,
        typer.Option("--images", help="Folder of the images. Of a model: label these, with predictions for new ones."),
    ] = None,
    force: opt.Force = False,
    encoder: opt.ModelEncoder = None,
    weights: opt.Weights = None,
    cache: opt.CacheFolder = None,
    quiet: opt.Quiet = False,
) -> None:
    """Write labels of images for Label Studio, CVAT, programs that read COCO, or a spreadsheet.

    Of a model: the images that it has learned, by their names. With --images, every image in that folder: what was
    learned has its label, the others have the best class as a prediction, to be checked in the other program. Of a
    folder that `hycal sort` made: its predictions. Of class folders, or of a file in any of the formats: its labels.

    `hycal learn` reads all these files. It learns the labels of people, and no predictions.

    Example: hycal labels photos.hycal --images pile --to label-studio --out tasks.json
    """
    from hycal.data.annotations import MARKS, write_labels  # here, so that --help does not wait for it
    from hycal.data.annotations.label_studio import labeling_interface

    if to not in MARKS:
        raise typer.BadParameter(f"{to!r} is unknown; expected one of {', '.join(MARKS)}", param_hint="--to")
    check_folder(out)
    mark = b"" if force else MARKS[to]
    check_replaceable(out, mark)
    found, root = _labels(source, images, EncoderChoice(encoder, weights, cache), quiet)
    if not found:
        raise HyCalError(f"{source} has no images, so nothing was written.")
    write_whole(out, write_labels(found, to, _sizes(root)), mark=mark)
    named = [item for item in found if item.label]
    names, files = sorted({item.name for item in named}), len({item.file for item in found})
    predicted = sum(item.predicted for item in named)
    given = len(named) - predicted
    confirm(
        f"{out}: {plural(files, 'image')}, {plural(given, 'label')}, {plural(predicted, 'prediction')}, "
        f"{class_count(len(names))}",
        *([f"labeling interface: {labeling_interface(names)}"] if to == "label-studio" else []),
    )


def _labels(
    source: Path, images: Path | None, choice: EncoderChoice, quiet: bool
) -> tuple[list[ImageLabel], Path | None]:
    """Return the labels, and the folder of their images if it is known."""
    from hycal.data.annotations import SUFFIXES, ImageLabel, read_labels
    from hycal.data.readers import list_images
    from hycal.embedding.store import Skipped

    if source.is_file() and source.suffix.lower() in SUFFIXES:
        labels = read_labels(source)
        print_skipped([Skipped(item.file, item.problem) for item in labels if item.problem], rest="")
        return labels, images or source.parent
    if source.is_dir():
        if images is not None:
            raise HyCalError(f"--images says where the images of a model or a file are, and {source} is a folder.")
        manifest = read_manifest(source)
        if manifest is not None:
            return _of_sorted(manifest), source
        return [ImageLabel(one.file, one.label, one.domain, one.split) for one in list_images(source)], source
    project = open_project(source)
    if images is None:
        return _of_model(project), None
    return _of_pile(project, images, choice, quiet), images


def _of_sorted(manifest: Manifest) -> list[ImageLabel]:
    """Return what `hycal sort` decided; an image that fits no class has no label."""
    from hycal.data.annotations import MODEL, ImageLabel, one_class

    return [
        ImageLabel(entry.target, sha256=entry.sha256)
        if entry.place == UNKNOWN
        else one_class(entry.target, [entry.label], by=MODEL, confidence=entry.probability, sha256=entry.sha256)
        for entry in manifest.entries
    ]


def _of_model(project: Project) -> list[ImageLabel]:
    """Return the learned images. Of an image without a name, the content hash is the name."""
    from hycal.data.annotations import one_class

    return [
        one_class(example.name or example.identity.hex(), [str(label)], sha256=example.key.hex())
        for label in project.state.labels
        for example in project.state.classes[label].examples
    ]


def _of_pile(project: Project, folder: Path, choice: EncoderChoice, quiet: bool) -> list[ImageLabel]:
    """Return the images of a folder: learned ones with their labels, the others with the best class of the model."""
    from hycal.data.annotations import MODEL, ImageLabel, one_class
    from hycal.pile.sorting import decide

    taught, classifier = project.state.label_of, classifier_of(project)
    pile = open_pile(project, folder, choice, quiet=quiet)
    decisions = [None] * len(pile.files) if classifier is None else decide(classifier, pile.rows)
    found = []
    for file, key, guess in zip(pile.files, pile.keys, decisions, strict=True):
        if key in taught:
            found.append(one_class(file, [str(taught[key])], sha256=key.hex()))
        elif guess is None or guess.place == UNKNOWN:
            found.append(ImageLabel(file, sha256=key.hex()))
        else:
            about = {"by": MODEL, "confidence": guess.probability, "sha256": key.hex()}
            found.append(one_class(file, [str(guess.label)], **about))
    print_skipped(pile.skipped, rest="")
    return found


def _sizes(root: Path | None) -> Callable[[str], tuple[int, int] | None]:
    """Return the function that reads width and height from the head of an image in `root`."""
    from PIL import Image

    inside = None if root is None else Path(os.path.realpath(root))

    def size_of(file: str) -> tuple[int, int] | None:
        try:
            path = None if inside is None else Path(os.path.realpath(inside / file))
            if path is None or inside is None or not path.is_relative_to(inside) or not path.is_file():
                return None
            with Image.open(path) as image:
                return image.size
        except Exception:  # Pillow raises errors of any type, and a name may be impossible
            return None

    return size_of
