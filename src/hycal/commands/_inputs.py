"""Labelled images to ask a model about: a folder, a manifest, or a table of embeddings, in the model's own terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from hycal.commands._output import say
from hycal.commands.embed import embed_images
from hycal.data.labelled import list_images
from hycal.embedding import embed, is_table, read_table
from hycal.embedding.store import space_of
from hycal.encoders.protocol import Encoder
from hycal.errors import HyCalError
from hycal.validation import Floats, Label

if TYPE_CHECKING:
    from hycal.base import IncrementalClassifier
    from hycal.project import Project

HELD_OUT = ("test", "val")  # of these, the first that there is: what was learned says little about what was not


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
    encoder = _encoder(project, choice)
    way = partial(embed, encoder=encoder)
    result = embed_images([images[at] for at in wanted], encoder, choice.cache, way, console)
    if not len(result.rows):
        raise HyCalError(f"None of the {len(wanted)} images in {source} can be used. {result.skipped[0].reason}")
    labels = list(wanted.values())
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
        say(console, f"{len(asked):,} images of the split {split!r} are asked, the others are left out")
    if len(wanted) < len(asked):
        say(console, f"{len(asked) - len(wanted):,} images are left out: the model does not know their class")
    return wanted


def _label(names: Mapping[str, Label], domain: str, name: str) -> Label | None:
    """Return the model's label for a class of a domain: DOMAIN/CLASS, or CLASS alone."""
    return names.get(f"{domain}/{name}", names.get(name))


def _encoder(project: Project, choice: EncoderChoice) -> Encoder:
    """Return the encoder that the model was learned with, or say that this is another one."""
    from hycal.encoders import load_encoder

    learned_in, name = project.state.classifier.encoder_, choice.name or project.state.space.name
    if not name:
        raise HyCalError(
            f"{project.path} does not name the encoder it was learned with. Pass it: --encoder NAME; "
            "`hycal encoders list` shows them."
        )
    encoder = load_encoder(name, weights=choice.weights)
    if learned_in not in (None, space_of(encoder), encoder.fingerprint):
        raise HyCalError(
            f"{project.path} was learned in the space {learned_in!r}, but encoder {name!r} gives "
            f"{space_of(encoder)!r}. Pass the encoder of the model: --encoder NAME."
        )
    return encoder
