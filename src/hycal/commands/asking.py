"""Labelled images to ask a model about: a folder, a manifest, or a table of embeddings, in the model's own terms."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from hycal import modelfile
from hycal.commands.embed import embed_images
from hycal.commands.saying import say
from hycal.data.listing import list_images
from hycal.embedding import is_table, read_table
from hycal.embedding.pipeline import BATCH
from hycal.embedding.store import space_of
from hycal.encoders.protocol import Encoder
from hycal.errors import HyCalError
from hycal.validation import Floats, Label

if TYPE_CHECKING:
    from hycal.base import IncrementalClassifier

HELD_OUT = ("test", "val")  # of these, the first that there is: what was learned says little about what was not


@dataclass(frozen=True)
class EncoderChoice:
    """What the user said about the encoder: its name ("" to take that in the model file), weights and cache."""

    name: str
    weights: Path | None
    cache: Path | None


def ask(
    source: Path, model: Path, classifier: IncrementalClassifier, choice: EncoderChoice, console: Console
) -> tuple[Floats, list[Label]]:
    """Return embeddings and labels of the images in `source` that are held out and of classes that the model knows."""
    return _known(_queries(source, model, classifier, choice, console), classifier, source, console)


@dataclass(frozen=True, eq=False)
class _Queries:
    rows: Floats
    labels: tuple[tuple[str, str], ...]  # domain and class
    splits: tuple[str, ...]


def _queries(
    source: Path, model: Path, classifier: IncrementalClassifier, choice: EncoderChoice, console: Console
) -> _Queries:
    if is_table(source):
        table = read_table(source, fingerprint=classifier.encoder_)
        pairs = zip(table.domains.tolist(), table.labels.tolist(), strict=True)
        return _Queries(table.rows, tuple(pairs), tuple(table.splits.tolist()))
    images = list_images(source)
    encoder = _encoder(classifier, model, choice)
    result = embed_images(images, encoder, choice.cache, BATCH, console)
    kept = [images[position] for position in result.kept]
    return _Queries(
        result.rows, tuple((image.domain, image.label) for image in kept), tuple(image.split for image in kept)
    )


def _encoder(classifier: IncrementalClassifier, model: Path, choice: EncoderChoice) -> Encoder:
    """Return the encoder that the model was learned with, or say that this is another one."""
    from hycal.encoders import load_encoder

    project: Any = modelfile.read(model).manifest.get("project", {})
    name = choice.name or (project.get("encoder_name", "") if isinstance(project, dict) else "")
    if not name:
        raise HyCalError(
            f"{model} does not name the encoder it was learned with. Pass it: --encoder NAME; `hycal encoders list` "
            "shows them."
        )
    encoder = load_encoder(name, weights=choice.weights)
    if classifier.encoder_ not in (None, space_of(encoder), encoder.fingerprint):
        raise HyCalError(
            f"{model} was learned in the space {classifier.encoder_!r}, but encoder {name!r} gives "
            f"{space_of(encoder)!r}. Pass the encoder of the model: --encoder NAME."
        )
    return encoder


def _known(
    queries: _Queries, classifier: IncrementalClassifier, source: Path, console: Console
) -> tuple[Floats, list[Label]]:
    """Return what is held out and of classes that the model knows, with its labels; say what is left out."""
    split = next((split for split in HELD_OUT if split in queries.splits), None)
    asked = [row for row, name in enumerate(queries.splits) if split is None or name == split]
    names = {str(label): label for label in classifier.classes_.tolist()}
    labels = {row: label for row in asked if (label := _label(names, *queries.labels[row])) is not None}
    if not labels:
        first = "/".join(filter(None, queries.labels[0])) if queries.labels else ""
        raise HyCalError(
            f"{source} has no image of a class that the model knows; its first label is {first!r}, and the model has "
            f"{', '.join(sorted(names)[:3])}, ... Name the folders as the classes: DOMAIN/CLASS."
        )
    if split is not None:
        say(console, f"{len(asked):,} images of the split {split!r} are asked, the others are left out")
    if len(labels) < len(asked):
        say(console, f"{len(asked) - len(labels):,} images are left out: the model does not know their class")
    return queries.rows[list(labels)], list(labels.values())


def _label(names: dict[str, Label], domain: str, name: str) -> Label | None:
    """Return the model's label for a class of a domain: DOMAIN/CLASS, or CLASS alone."""
    return names.get(f"{domain}/{name}", names.get(name))
