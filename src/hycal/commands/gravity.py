"""`hycal gravity`: which domain of a model takes whose images."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hycal import modelfile
from hycal.base import IncrementalClassifier
from hycal.bench.report.gravity import draw_flow, draw_pull
from hycal.bench.report.page import document
from hycal.commands.embed import CacheFolder, Weights, embed_images
from hycal.commands.failing import told
from hycal.commands.saying import say, shown
from hycal.data.listing import list_images
from hycal.embedding import is_table, read_table
from hycal.embedding.atomic import replacing
from hycal.embedding.pipeline import BATCH
from hycal.embedding.store import space_of
from hycal.encoders.protocol import Encoder
from hycal.errors import HyCalError
from hycal.gravity import Gravity, measure, uncalibrated
from hycal.gravity.writing import html_tables, sheets, summary
from hycal.loading import load
from hycal.validation import Floats, Label

HELD_OUT = ("test", "val")  # of these, the first that there is: what was learned says little about what was not

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="The model file.")]
Source = Annotated[
    Path,
    typer.Argument(
        metavar="FOLDER",
        help="Labelled images that were not learned: DOMAIN/CLASS/x.jpg, a manifest, or embeddings as .npz.",
    ),
]
Name = Annotated[str, typer.Option(help="Encoder of the model, if its file does not name it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
Page = Annotated[Path | None, typer.Option("--html", help="HTML page to write, with tables and pictures.")]


@told
def gravity_command(
    model: ModelFile,
    source: Source,
    encoder: Name = "",
    weights: Weights = None,
    cache: CacheFolder = None,
    json_: AsJson = False,
    page: Page = None,
) -> None:
    """Show which domain of a model takes whose images, before and after calibration.

    FOLDER holds images of the model's classes as DOMAIN/CLASS/x.jpg or DOMAIN/test/CLASS/x.jpg; if it has a test or
    val split, only that is asked. Or it is a table of `hycal embed`. Images of other classes are left out.

    Example: hycal gravity model.safetensors photos --html gravity.html
    """
    console = Console(stderr=True)
    classifier = load(model)
    queries = _queries(source, classifier, model, encoder, weights, cache, console)
    rows, labels = _known(queries, classifier, source, console)
    measured = _before_and_after(classifier, rows, labels)
    if page is not None:
        _write_page(page, measured, model.name)
        say(console, f"{page}: the page")
    if json_:
        typer.echo(json.dumps({name: one.as_json() for name, one in measured.items()}, indent=1))
        return
    _tell(Console(), measured)


@dataclass(frozen=True, eq=False)
class _Queries:
    rows: Floats
    labels: tuple[tuple[str, str], ...]  # domain and class
    splits: tuple[str, ...]


def _queries(
    source: Path,
    classifier: IncrementalClassifier,
    model: Path,
    encoder: str,
    weights: Path | None,
    cache: Path | None,
    console: Console,
) -> _Queries:
    if is_table(source):
        table = read_table(source, fingerprint=classifier.encoder_)
        pairs = zip(table.domains.tolist(), table.labels.tolist(), strict=True)
        return _Queries(table.rows, tuple(pairs), tuple(table.splits.tolist()))
    images = list_images(source)
    tower = _encoder(classifier, model, encoder, weights)
    result = embed_images(images, tower, cache, BATCH, console)
    kept = [images[position] for position in result.kept]
    return _Queries(
        result.rows, tuple((image.domain, image.label) for image in kept), tuple(image.split for image in kept)
    )


def _encoder(classifier: IncrementalClassifier, model: Path, name: str, weights: Path | None) -> Encoder:
    """Return the encoder that the model was learned with, or say that this is another one."""
    from hycal.encoders import load_encoder

    project: Any = modelfile.read(model).manifest.get("project", {})
    name = name or (project.get("encoder_name", "") if isinstance(project, dict) else "")
    if not name:
        raise HyCalError(
            f"{model} does not name the encoder it was learned with. Pass it: --encoder NAME; `hycal encoders list` "
            "shows them."
        )
    encoder = load_encoder(name, weights=weights)
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


def _before_and_after(classifier: IncrementalClassifier, rows: Floats, labels: Sequence[Label]) -> dict[str, Gravity]:
    """Return the gravity of the model, and of direction alone if that can be told and is something else."""
    after = measure(classifier, rows, labels)
    if not classifier.counts_.all():  # classes that have no image have no direction
        return {"after": after}
    before = measure(uncalibrated(classifier), rows, labels)
    return {"after": after} if before.method == after.method else {"before": before, "after": after}


def _tell(console: Console, measured: dict[str, Gravity]) -> None:
    for when, one in measured.items():
        say(console, _sentence(when, one))
        for sheet in sheets(one):
            table = Table(title=_plain(sheet.title), caption=_plain(sheet.note), box=None)
            for place, name in enumerate(sheet.head):
                table.add_column(_plain(name), justify="right" if place else "left")
            for row in sheet.rows:
                table.add_row(*map(_plain, row))
            console.print(table, highlight=False)


def _plain(text: str) -> Text:
    """Return text as it is: brackets in a name are no markup."""
    return Text(shown(text))


def _sentence(when: str, one: Gravity) -> str:
    return f"{one.method} ({when} calibration): {summary(one)}"


def _write_page(path: Path, measured: dict[str, Gravity], name: str) -> None:
    both = list(measured.values())
    sentences = "".join(f"<p>{html.escape(_sentence(when, one))}</p>" for when, one in measured.items())
    drawings = f"<figure>{draw_flow(both, name)}</figure><figure>{draw_pull(both, name)}</figure>"
    tables = "".join(html_tables(sheets(one)) for one in both)
    with replacing(path) as file:
        file.write(document(f"Domain Gravity of {name}", sentences + drawings + tables).encode())
