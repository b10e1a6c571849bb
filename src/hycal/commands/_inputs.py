"""What commands open: a model, its encoder, the embedding cache, and labelled images to test a model with."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from hycal.commands._output import INTERRUPTED, embedding_progress, print_line
from hycal.errors import HyCalError

if TYPE_CHECKING:  # `hycal predict --help` imports this module, and none of these
    from hycal.embedding import Embedded, EmbeddingCache, ImageSource, Skipped
    from hycal.embedding.store import JoinedStore
    from hycal.encoders.encoder import Encoder
    from hycal.project import Project, State
    from hycal.project.inputs import HeldOutImages
    from hycal.validation import Floats, Label

DEFAULT_ENCODER = "builtin"


def open_project(path: Path) -> Project:
    """Return the project in a file."""
    from hycal.project import Project  # here, so that the help of a command does not wait for it

    return Project(path)


def new_project(
    path: Path, encoder: str | None, weights: Path | None, *, method: str | None = None, journal: bool = False
) -> tuple[Project, Encoder]:
    """Return an empty project and the encoder that it will learn with; the first change creates the file."""
    from hycal.encoders import load_encoder  # imports ONNX Runtime, which is slow
    from hycal.project import DEFAULT_METHOD, Project, empty_state
    from hycal.project.encoder import encoder_space
    from hycal.storage.atomic import check_folder

    check_names(encoder, method)
    check_folder(path)
    loaded = load_encoder(encoder or DEFAULT_ENCODER, weights=weights)
    empty = empty_state(encoder_space(loaded), has_text=loaded.has_text, method=method or DEFAULT_METHOD)
    return Project(path, empty, journal=journal), loaded


def check_names(encoder: str | None, method: str | None) -> None:
    """Refuse an encoder or a method that does not exist, before anything is read."""
    from hycal.classifiers import METHODS
    from hycal.encoders.catalog import find_parts

    if encoder is not None:
        find_parts(encoder)
    if method is not None:
        METHODS.find(method)


def check_share(value: float | None) -> float | None:
    """Refuse an option that is no share, by its name and before anything is read; 0 means none."""
    return value if value == 0.0 else check_some_share(value)


def check_some_share(value: float | None) -> float | None:
    """Refuse 0 too."""
    if value is not None:
        from hycal.uncertainty.unknown import check_share as check  # which the command needs too, but its help does not

        try:
            check("the value", value)
        except HyCalError as problem:
            raise typer.BadParameter(str(problem)) from None
    return value


def model_encoder(state: State, name: str | None, weights: Path | None) -> Encoder:
    """Load the encoder of a model, and warn of each of its views that cannot be made here; see `encoder_of`."""
    from hycal.project.encoder import encoder_of

    encoder = encoder_of(state, name, weights)
    warn_of_missing_views(encoder)
    return encoder


def warn_of_missing_views(encoder: Encoder) -> None:
    """Name the views that rows of an encoder lack on this machine, and why."""
    from hycal.project.encoder import missing_views

    for view, reason in missing_views(encoder).items():
        print_line(Console(stderr=True), f"without the view {view}: {reason}", label="warning", style="yellow")


def check_method(project: Project, method: str | None) -> None:
    """Refuse another method than that of a model that exists."""
    own = type(project.state.classifier).__name__
    if method is not None and method.lower() != own.lower():
        raise HyCalError(
            f"{project.path} is a {own} model, and learning does not change its method to {method!r}. `hycal remake "
            f"{project.path} {method}` does."
        )


@contextlib.contextmanager
def embedding_cache(
    encoder: Encoder, folder: Path | None, *, unchanged: str = "the model is as it was, and "
) -> Iterator[EmbeddingCache | JoinedStore[EmbeddingCache]]:
    """Open the embedding cache in `folder`, by default the user's. On Ctrl+C say what is kept, and exit 130."""
    from hycal.embedding.cache import embeddings_folder, open_cache

    with open_cache(encoder, folder or embeddings_folder()) as store:
        try:
            yield store
        except KeyboardInterrupt:
            kept = f"{len(store):,} embeddings are kept. Run the same command again to go on."
            print_line(Console(stderr=True), f"interrupted; {unchanged}{kept}")
            raise typer.Exit(INTERRUPTED) from None


def rows_before(store: EmbeddingCache | JoinedStore[EmbeddingCache]) -> list[set[bytes]]:
    """Return which images each part of a combined encoder has in the cache; [] of one encoder, whose run counts."""
    from hycal.embedding.store import JoinedStore

    return [part.known() for part in store.parts] if isinstance(store, JoinedStore) else []


def embedded_before(encoder: Encoder, before: list[set[bytes]], keys: Sequence[bytes], encoded: int) -> tuple[str, str]:
    """Return the encoders that embedded, and how many of the images were embedded before: by part if they differ."""
    from hycal.encoders.catalog import JOINED_BY
    from hycal.encoders.encoder import present_parts

    names = [part.name for part in present_parts(encoder)]
    counts = [sum(key in own for key in keys) for own in before]
    if not encoded or len({frozenset(own.intersection(keys)) for own in before}) < 2:
        return JOINED_BY.join(names), f"{len(keys) - encoded:,} embedded before"
    used = [name for name, count in zip(names, counts, strict=True) if count < len(keys)]
    said = " and ".join(f"{count:,} by {name}" for name, count in zip(names, counts, strict=True))
    return JOINED_BY.join(used), f"{said} embedded before"


def embed_images(
    images: Sequence[ImageSource],
    encoder: Encoder,
    cache: Path | None,
    *,
    summary: Console | None,
    way: Callable[..., Embedded] | None = None,
    quiet: bool = False,
) -> Embedded:
    """Embed images through the cache with a progress bar, and print a summary on `summary`.

    `way` embeds sources: by default `embed` in this process, else the same on a cluster. `quiet` hides the bar.
    """
    from hycal.embedding import embed

    began = time.monotonic()
    with (
        embedding_cache(encoder, cache, unchanged="") as store,
        embedding_progress(Console(stderr=True, quiet=quiet), total=len(images)) as watch,
    ):
        before, run = rows_before(store), way or partial(embed, encoder=encoder)
        result = run(images, store=store, watch=watch)
    if summary is not None:
        seconds, new = time.monotonic() - began, result.encoded
        used, known = embedded_before(encoder, before, result.keys, new)
        if new:
            made = f"{new:,} images encoded with {used} ({new / seconds:.1f} images/s), {known}"
        else:
            made = f"no image was encoded, {len(result.rows):,} in the cache"
        print_line(summary, f"{len(images):,} files in {seconds:.1f} s: {made}, {len(result.skipped):,} skipped")
    return result


@dataclass(frozen=True)
class EncoderChoice:
    """The options about the encoder: its name (None: the model's own), its weights, and the folder of the cache."""

    name: str | None
    weights: Path | None
    cache: Path | None


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Embeddings that judge a model."""

    rows: Floats  # (n, d)
    labels: list[Label]  # the model's own label of each
    learned: int = 0  # how many of the images the model has learned
    skipped: tuple[Skipped, ...] = ()  # the images that could not be used


def embed_held_out(
    inputs: HeldOutImages, state: State, choice: EncoderChoice, *, summary: Console | None, quiet: bool = False
) -> HeldOutRows:
    """Embed the images that judge a model, unless they are embeddings already; print a summary on `summary`."""
    import numpy as np

    if isinstance(inputs.images, np.ndarray):
        return HeldOutRows(inputs.images, inputs.labels)
    encoder = model_encoder(state, choice.name, choice.weights)
    result = embed_images(inputs.images, encoder, choice.cache, summary=summary, quiet=quiet)
    if not len(result.rows):
        first = result.skipped[0]
        raise HyCalError(
            f"None of the {len(inputs.labels)} images in {inputs.left_out.source} can be used. "
            f"The first: {first.name}: {first.reason}."
        )
    learned = sum(key in state.label_of for key in result.keys)
    return HeldOutRows(result.rows, [inputs.labels[at] for at in result.kept], learned, result.skipped)
