"""What commands open: a model, its encoder, the embedding cache, and labelled images to test a model with."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import typer
from rich.console import Console

from hycal.commands._output import INTERRUPTED, embedding_progress, print_line
from hycal.embedding import Embedded, EmbeddingCache, ImageSource, embed
from hycal.encoders.encoder import Encoder
from hycal.errors import HyCalError
from hycal.validation import Floats, Label

if TYPE_CHECKING:
    from hycal.encoders.catalog import Backend
    from hycal.project import Project, State
    from hycal.project.inputs import LeftOut

DEFAULT_ENCODER = "builtin"


def load_encoder(name: str, weights: Path | None, backend: Backend = "onnx") -> Encoder:
    """Return an encoder; the import of ONNX Runtime waits for this call."""
    from hycal.encoders import load_encoder

    return load_encoder(name, weights=weights, backend=backend)


def new_project(
    path: Path, encoder: str | None, weights: Path | None, *, method: str | None = None, journal: bool = False
) -> tuple[Project, Encoder]:
    """Return an empty project and the encoder that it will learn with; the first change creates the file."""
    from hycal.project import DEFAULT_METHOD, Project, empty_state
    from hycal.project.encoder import space
    from hycal.project.project import check_folder

    check_folder(path)
    tower = load_encoder(encoder or DEFAULT_ENCODER, weights)
    empty = empty_state(space(tower), has_text=tower.has_text, method=method or DEFAULT_METHOD)
    return Project(path, empty, journal=journal), tower


@contextlib.contextmanager
def embedding_cache(
    encoder: Encoder, folder: Path | None, *, unchanged: str = "the model is as it was, and "
) -> Iterator[EmbeddingCache]:
    """Open the embedding cache in `folder`, by default the user's. On Ctrl+C say what is kept, and exit 130."""
    from hycal.embedding.cache import embeddings_folder

    with EmbeddingCache.of(encoder, folder or embeddings_folder()) as store:
        try:
            yield store
        except KeyboardInterrupt:
            kept = f"{len(store):,} embeddings are kept. Run the same command again to go on."
            print_line(Console(stderr=True), f"interrupted; {unchanged}{kept}")
            raise typer.Exit(INTERRUPTED) from None


def embed_images(
    images: Sequence[ImageSource],
    encoder: Encoder,
    cache: Path | None,
    console: Console,
    *,
    way: Callable[..., Embedded] | None = None,
) -> Embedded:
    """Embed images through the cache, and print progress and a summary on `console`.

    `way` embeds sources: by default `embed` in this process, else the same on a cluster.
    """
    began = time.monotonic()
    with (
        embedding_cache(encoder, cache, unchanged="") as store,
        embedding_progress(console, total=len(images)) as watch,
    ):
        run = way or partial(embed, encoder=encoder)
        result = run(images, store=store, watch=watch)
    seconds = time.monotonic() - began
    print_line(
        console,
        f"{len(images):,} files in {seconds:.1f} s: {result.encoded:,} images encoded with {encoder.name} "
        f"({result.encoded / seconds:.1f} images/s), {len(result.rows) - result.encoded:,} known already, "
        f"{len(result.skipped):,} skipped",
    )
    return result


@dataclass(frozen=True)
class EncoderChoice:
    """What the user said about the encoder: its name ("" to take that in the model file), weights and cache."""

    name: str
    weights: Path | None
    cache: Path | None


def ask(source: Path, state: State, choice: EncoderChoice, console: Console) -> tuple[Floats, list[Label]]:
    """Return embeddings and labels of the images in `source` that judge the model."""
    from hycal.project.encoder import encoder_of
    from hycal.project.inputs import held_out

    inputs = held_out(source, state)
    _print_left_out(inputs.left_out, console)
    if isinstance(inputs.images, np.ndarray):
        return inputs.images, inputs.labels
    result = embed_images(inputs.images, encoder_of(state, choice.name, choice.weights), choice.cache, console)
    if not len(result.rows):
        raise HyCalError(f"None of the {len(inputs.labels)} images in {source} can be used. {result.skipped[0].reason}")
    return result.rows, [inputs.labels[at] for at in result.kept]


def _print_left_out(left_out: LeftOut, console: Console) -> None:
    for split, count in left_out.splits.items():
        print_line(console, f"{count:,} images of the split {split!r} are left out: a model is judged on the others")
    if left_out.images:
        print_line(console, f"{len(left_out.images):,} images are left out: the model does not know their class")
