"""What commands open: a model, its encoder, the embedding cache, and labelled images to test a model with."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from hycal.commands._output import INTERRUPTED, embedding_progress, print_line
from hycal.data.labelled import ListedImage, list_images
from hycal.embedding import Embedded, EmbeddingCache, embed, is_table, read_table
from hycal.embedding.store import space_of
from hycal.encoders.protocol import Encoder
from hycal.errors import HyCalError
from hycal.validation import Floats, Label

if TYPE_CHECKING:
    from hycal.base import IncrementalClassifier
    from hycal.encoders.catalog import Backend
    from hycal.project import Project, State

DEFAULT_ENCODER = "builtin"
HELD_OUT = ("test", "val")  # of these, the first that there is: what was learned says little about what was not


def load_encoder(name: str, weights: Path | None, backend: Backend = "onnx") -> Encoder:
    """Return an encoder; the import of ONNX Runtime waits for this call."""
    from hycal.encoders import load_encoder

    return load_encoder(name, weights=weights, backend=backend)


def encoder_of(state: State, asked: str | None, weights: Path | None) -> Encoder:
    """Return the encoder that a model was learned with; raise if `asked` names another one."""
    from hycal.project.images import check_encoder

    own = state.space.name
    if not own and asked is None:
        raise HyCalError("This model does not say which encoder made its embeddings. Name it with --encoder.")
    if own and asked not in (None, own):
        raise HyCalError(
            f"This model was learned with encoder {own!r}, so {asked!r} cannot be used with it: their embeddings "
            f"cannot be compared. Leave --encoder out, or learn the images again into a new model."
        )
    encoder = load_encoder(asked or own, weights)
    check_encoder(state, encoder)
    return encoder


def new_project(
    path: Path, encoder: str | None, weights: Path | None, *, method: str | None = None, journal: bool = False
) -> tuple[Project, Encoder]:
    """Return an empty project and the encoder that it will learn with; the first change creates the file."""
    from hycal.project import DEFAULT_METHOD, Project, empty_state
    from hycal.project.images import space
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
    from hycal.encoders.files import embeddings_folder

    with EmbeddingCache.of(encoder, folder or embeddings_folder()) as store:
        try:
            yield store
        except KeyboardInterrupt:
            kept = f"{len(store):,} embeddings are kept. Run the same command again to go on."
            print_line(Console(stderr=True), f"interrupted; {unchanged}{kept}")
            raise typer.Exit(INTERRUPTED) from None


def embed_images(
    images: Sequence[ListedImage],
    encoder: Encoder,
    cache: Path | None,
    console: Console,
    *,
    way: Callable[..., Embedded] | None = None,
) -> Embedded:
    """Embed listed images through the cache, and print progress and a summary on `console`.

    `way` embeds sources: by default `embed` in this process, else the same on a cluster.
    """
    began = time.monotonic()
    with (
        embedding_cache(encoder, cache, unchanged="") as store,
        embedding_progress(console, total=len(images)) as watch,
    ):
        run = way or partial(embed, encoder=encoder)
        result = run([image.source for image in images], store=store, watch=watch)
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


def ask(source: Path, project: Project, choice: EncoderChoice, console: Console) -> tuple[Floats, list[Label]]:
    """Return embeddings and labels of the images in `source` that are held out and of classes that the model knows."""
    classifier = project.state.classifier
    if is_table(source):
        table = read_table(source, fingerprint=classifier.encoder_)
        columns = (table.domains.tolist(), table.labels.tolist(), table.splits.tolist())
        wanted = _wanted(list(zip(*columns, strict=True)), classifier, source, console)
        return table.rows[list(wanted)], list(wanted.values())
    images = list_images(source)
    wanted = _wanted([(image.domain, image.label, image.split) for image in images], classifier, source, console)
    result = embed_images([images[at] for at in wanted], _encoder(project, choice), choice.cache, console)
    if not len(result.rows):
        raise HyCalError(f"None of the {len(wanted)} images in {source} can be used. {result.skipped[0].reason}")
    labels = list(wanted.values())
    return result.rows, [labels[at] for at in result.kept]
    return result.rows, [labels[at] for at in result.kept]


def _wanted(
    places: Sequence[tuple[str, str, str]], classifier: IncrementalClassifier, source: Path, console: Console
) -> dict[int, Label]:
    """Return the model's label of each image that is held out and of a known class; say what is left out.

    `places` are domain, class and split of each image.
    """
    split = next((name for name in HELD_OUT if any(place[2] == name for place in places)), None)
    asked = [at for at, place in enumerate(places) if split in (None, place[2])]
    names = {str(label): label for label in classifier.classes_.tolist()}
    wanted = {at: label for at in asked if (label := _label(names, *places[at][:2])) is not None}
    if not wanted:
        first = "/".join(filter(None, places[0][:2])) if places else ""
        raise HyCalError(
            f"{source} has no image of a class that the model knows; its first label is {first!r}, and the model has "
            f"{', '.join(sorted(names)[:3])}, ... Name the folders as the classes: DOMAIN/CLASS."
        )
    if split is not None:
        print_line(console, f"{len(asked):,} images of the split {split!r} are asked, the others are left out")
    if len(wanted) < len(asked):
        print_line(console, f"{len(asked) - len(wanted):,} images are left out: the model does not know their class")
    return wanted


def _label(names: Mapping[str, Label], domain: str, name: str) -> Label | None:
    """Return the model's label for a class of a domain: DOMAIN/CLASS, or CLASS alone."""
    return names.get(f"{domain}/{name}", names.get(name))


def _encoder(project: Project, choice: EncoderChoice) -> Encoder:
    """Return the encoder that the model was learned with, or say that this is another one."""

    learned_in, name = project.state.classifier.encoder_, choice.name or project.state.space.name
    if not name:
        raise HyCalError(
            f"{project.path} does not name the encoder it was learned with. Pass it: --encoder NAME; "
            "`hycal encoders list` shows them."
        )
    encoder = load_encoder(name, choice.weights)
    if learned_in not in (None, space_of(encoder), encoder.fingerprint):
        raise HyCalError(
            f"{project.path} was learned in the space {learned_in!r}, but encoder {name!r} gives "
            f"{space_of(encoder)!r}. Pass the encoder of the model: --encoder NAME."
        )
    return encoder
