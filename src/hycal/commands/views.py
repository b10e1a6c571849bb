"""`hycal views`: the encoders whose embeddings a model has side by side; one more, or one less."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from hycal.commands import _options as opt
from hycal.commands._inputs import embed_images, embedding_cache
from hycal.commands._output import (
    plain,
    plural,
    print_json,
    print_line,
    print_receipt,
    print_table,
    report_errors,
    working,
)
from hycal.data.readers import list_images
from hycal.embedding.sources import ImageSource
from hycal.encoders.catalog import find_parts
from hycal.encoders.encoder import Encoder
from hycal.encoders.loader import load_tower
from hycal.errors import HyCalError
from hycal.project import Project, State
from hycal.project.encoder import encoder_space, text_embeddings
from hycal.project.examples import Example
from hycal.project.views import ViewSummary, check_addable, check_has_images, find_images, images_without, views_of
from hycal.validation import Floats, unit_rows

_NAMES_SHOWN = 3


@report_errors
def views_command(
    model: opt.Model,
    add: Annotated[
        str | None,
        typer.Option(
            "--add", metavar="ENCODER", help="Add the view of this encoder.", autocompletion=opt.complete_encoder
        ),
    ] = None,
    drop: Annotated[
        str | None,
        typer.Option(
            "--drop", metavar="ENCODER", help="Drop the view of this encoder.", autocompletion=opt.complete_encoder
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option("--images", metavar="FOLDER", help="With --add: where the learned images are, by any names."),
    ] = None,
    cache: opt.CacheFolder = None,
    weights: opt.Weights = None,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Show the views of a model: its encoders, their weights in each domain, and the images that lack one.

    With --add, the learned images are embedded by one more encoder, and by that alone; what was embedded before is in
    the cache. Images are recognised by their content: in --images, or where their names lead from this folder and from
    that of the model. An image that is not found lacks the view, and is answered from the others; --add again, with
    another folder, adds the view to it. With --drop, the model is exactly the one that never had the view.

    Both are changes: `hycal undo` takes them back.

    Example: hycal views photos.hycal --add builtin --images photos
    """
    if add is not None and drop is not None:
        raise HyCalError("--add and --drop exclude each other. Make one change after the other.")
    if images is not None and add is None:
        raise HyCalError("--images says where the images for --add are. Name the encoder too: --add ENCODER.")
    project = Project(model)
    if drop is not None:
        print_receipt(project, project.drop_view(drop), as_json=as_json)
    elif add is not None:
        _add(project, add, images, weights, cache, quiet=quiet, as_json=as_json)
    else:
        _show(model, project.state, as_json=as_json)


def _show(model: Path, state: State, *, as_json: bool) -> None:
    found = views_of(state)
    if as_json:
        print_json({"model": str(model), "images": state.n_images, "views": [_view_json(view) for view in found]})
        return
    domains = list(dict.fromkeys(domain for view in found for domain in view.weights))
    table = Table("encoder", "numbers", "texts", "images without it", box=None)
    for domain in domains:
        table.add_column(plain(domain))
    for view in found:
        weights = [f"{view.weights[domain]:.2f}" if domain in view.weights else "-" for domain in domains]
        name = plain(view.space.name or "not named")
        table.add_row(name, str(view.space.dimension), f"{view.texts:,}", f"{view.lacking:,}", *weights)
    print_table(table)
    if domains:
        print_line(Console(), "a column for each domain has the weights that held-out images gave the views")
    if state.sealed:
        print_line(
            Console(), "the model is sealed: add or drop views in the one that it was sealed from, and seal it again"
        )
    elif len(found) == 1:
        print_line(Console(), "one view; to add another: hycal views MODEL --add ENCODER --images FOLDER")


def _view_json(view: ViewSummary) -> dict[str, Any]:
    return {
        "encoder": view.space.name,
        "fingerprint": view.space.fingerprint,
        "dimension": view.space.dimension,
        "texts": view.texts,
        "lacking": view.lacking,
        "weights": dict(view.weights),
    }


def _add(
    project: Project,
    name: str,
    images: Path | None,
    weights: Path | None,
    cache: Path | None,
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    check_has_images(project.state)
    specs, listed = find_parts(name), None if images is None else list_images(images)
    if len(specs) > 1:
        raise HyCalError(f"{name!r} names {len(specs)} encoders. Add one after the other; each is a change.")
    spec = specs[0]
    like = next((part.fingerprint for part in project.state.space.parts if part.name == spec.name), None)
    with working("loading the encoder", quiet=quiet):
        encoder = load_tower(spec.name, weights=weights, like=None if like is None else like.partition("/")[0])
    part = encoder_space(encoder)
    check_addable(project.state, part)
    wanted = images_without(project.state, part)
    sources = None if listed is None else [image.source for image in listed]
    rows = _rows(project, encoder, wanted, sources, cache, quiet=quiet)
    lacking = [example.name for key, example in wanted.items() if key not in rows]
    if wanted and not rows:
        raise HyCalError(
            f"None of the {plural(len(wanted), 'image')} that lack the view {spec.name} was found, so nothing was "
            "changed. Name the folder that was learned: --images FOLDER."
        )
    receipt = project.add_view(part, rows, text_embeddings(project.state.labels, encoder))
    notes = [_lacking_note(lacking, spec.name)] if lacking else []
    print_receipt(project, receipt, as_json=as_json, more={"not_found": lacking}, notes=notes)


def _rows(
    project: Project,
    encoder: Encoder,
    wanted: Mapping[bytes, Example],
    sources: list[ImageSource] | None,
    cache: Path | None,
    *,
    quiet: bool,
) -> dict[bytes, Floats]:
    """Return the embeddings of learned images by content hash: from the cache, and of those that are found."""
    with embedding_cache(encoder, cache) as store:
        known = sorted(store.known() & wanted.keys())
        rows = dict(zip(known, unit_rows(store.get(known)), strict=True)) if known else {}
    rest = {key: example for key, example in wanted.items() if key not in rows}
    with working("looking for the images", quiet=quiet):
        found = find_images(rest, [Path(), project.path.parent], sources or [])
    if found:
        result = embed_images(
            list(found.values()), encoder, cache, summary=Console(stderr=True, quiet=quiet), quiet=quiet
        )
        rows |= dict(zip(result.keys, unit_rows(result.rows), strict=True)) if len(result.rows) else {}
    return rows


def _lacking_note(names: list[str], view: str) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    more = f", ... and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    found = f"{plural(len(names), 'image')} not found, without the view {view}: {shown}{more}"
    return f"{found}; to add it to them: --add again with --images FOLDER"
