"""A pile of images for commands: the embeddings of a folder, and the model that looks at them, if there is one.

Every command of piles imports this module for its options, so it imports no library for numbers before it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from hycal.commands._inputs import DEFAULT_ENCODER, EncoderChoice, embed_images, model_encoder, open_project
from hycal.commands._output import print_skipped
from hycal.errors import HyCalError

if TYPE_CHECKING:
    from hycal.base import IncrementalClassifier
    from hycal.embedding import ImageSource, Skipped
    from hycal.encoders.encoder import Encoder
    from hycal.project import Project
    from hycal.validation import Floats

PileFolder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of images; labels are not needed.")]
MaybeModel = Annotated[Path, typer.Argument(metavar="MODEL", help="The model's file; there may be none yet.")]


@dataclass(frozen=True, eq=False)
class Pile:
    """The usable images of a folder."""

    folder: Path
    files: list[str]  # path of each image below the folder
    rows: Floats  # (n, d): of unit length; with views, a row as a whole
    keys: tuple[bytes, ...]  # content hash of each image
    skipped: tuple[Skipped, ...]  # the files that are no images
    encoder: Encoder

    def source(self, row: int) -> ImageSource:
        """Return the image of a row."""
        from hycal.embedding.sources import ImageFile

        return ImageFile(self.folder / self.files[row])


def open_pile(
    project: Project | None, folder: Path, choice: EncoderChoice, *, quiet: bool, may_be_empty: bool = False
) -> Pile:
    """Embed the images of a folder with the encoder of the model, or without a model with the one that was chosen.

    A folder without an image is an error, unless it `may_be_empty`.
    """
    from hycal.embedding.sources import ImageFile, pile_files
    from hycal.encoders import load_encoder
    from hycal.validation import unit_queries

    encoder: Encoder
    paths = pile_files(folder)
    if not paths and not may_be_empty:
        raise HyCalError(f"The folder {folder} has no files in it. Expected images.")
    if project is None:
        encoder = load_encoder(choice.name or DEFAULT_ENCODER, weights=choice.weights)
    else:
        encoder = model_encoder(project.state, choice.name, choice.weights)
    summary = None if quiet else Console(stderr=True)
    found = embed_images([ImageFile(path) for path in paths], encoder, choice.cache, summary=summary, quiet=quiet)
    if not len(found.rows) and not may_be_empty:
        print_skipped(found.skipped, rest="")
        raise HyCalError(f"None of the {len(paths):,} files in {folder} is an image that can be used.")
    files = [paths[number].relative_to(folder).as_posix() for number in found.kept]
    rows = unit_queries(found.rows) if len(found.rows) else found.rows
    return Pile(folder, files, rows, found.keys, found.skipped, encoder)


def project_at(model: Path) -> Project | None:
    """Return the project at `model`; None if there is no file."""
    return open_project(model) if model.exists() else None


def classifier_of(project: Project | None) -> IncrementalClassifier | None:
    """Return the classifier of a project that has learned something."""
    return project.state.classifier if project is not None and project.state.classes else None
