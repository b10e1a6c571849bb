"""`hycal find` and `hycal duplicates`: images of a folder that are like one, of a class, of some words, or alike."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from hycal.commands import _options as opt
from hycal.commands._inputs import DEFAULT_ENCODER, EncoderChoice
from hycal.commands._output import counted, plural, print_json, print_line, print_skipped, report_errors, skipped_json
from hycal.commands._pile import MaybeModel, Pile, PileFolder, open_pile, project_at
from hycal.errors import HyCalError

if TYPE_CHECKING:
    from hycal.project import Project
    from hycal.validation import Floats


@report_errors
def find_command(
    model: MaybeModel,
    folder: PileFolder,
    what: Annotated[str, typer.Argument(metavar="IMAGE|CLASS|TEXT", help="An image file, a class, or some words.")],
    most: Annotated[int, typer.Option(min=1, help="How many images to show.")] = 20,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
    encoder: opt.ModelEncoder = None,
    weights: opt.Weights = None,
    cache: opt.CacheFolder = None,
) -> None:
    """Find images of a folder: those like an image, those of a class, or those that words describe; the best first.

    A file is looked for first, then a class of the model, and everything else is taken for words. Words need an encoder
    with a text tower; `hycal encoders list` shows which have one. The number behind an image is its cosine with the
    image or the words, or the probability of the class; an image of a class that fits no class is marked.

    Example: hycal find photos.hycal pile heron --most 10
    """
    from hycal.encoders.encoder import present_columns  # here, so that --help does not wait for it
    from hycal.pile.search import nearest_rows, rows_of_class, unlike_anything
    from hycal.project.labels import look_up_class

    project = project_at(model)
    class_ = None if project is None or _is_file(what) else look_up_class(project.state, what)
    pile = open_pile(project, folder, EncoderChoice(encoder, weights, cache), quiet=quiet)
    if class_ is not None and project is not None:
        kind, (label,) = "class", class_.images
        best, values = rows_of_class(pile.rows, project.state.classifier, label, most)
    else:
        query, key = _query(what, pile, project)
        kind = "image" if key else "text"
        best, values = nearest_rows(pile.rows, query, most + pile.keys.count(key), present_columns(pile.encoder))
        others = [pile.keys[row] != key for row in best]  # the image itself is no finding
        best, values = best[others][:most], values[others][:most]
    found = [{"file": pile.files[row], "value": float(value)} for row, value in zip(best, values, strict=True)]
    if class_ is not None and project is not None:
        strange = unlike_anything(pile.rows[best], project.state.classifier).tolist()
        found = [{**item, "unknown": unknown} for item, unknown in zip(found, strange, strict=True)]
    if as_json:
        print_json({"what": what, "kind": kind, "images": found, "skipped": skipped_json(pile.skipped)})
        return
    print_skipped(pile.skipped)
    for item in found:
        value = f"{item['value']:.1%}" if kind == "class" else f"{item['value']:.3f}"
        if kind == "class" and project is not None and len(project.state.labels) == 1:
            value = "the only class"
        mark = ", unlike anything learned" if item.get("unknown") else ""
        print_line(Console(), f"{folder / str(item['file'])}: {value}{mark}")


def _is_file(what: str) -> bool:
    try:
        return Path(what).is_file()
    except OSError:  # words that are too long for the name of a file
        return False


def _query(what: str, pile: Pile, project: Project | None) -> tuple[Floats, bytes]:
    """Return the embedding of an image with its content hash, or the embedding of words with none."""
    from hycal.embedding import embed
    from hycal.embedding.sources import ImageFile
    from hycal.project.labels import nearest_name

    if _is_file(what):
        found = embed([ImageFile(Path(what))], pile.encoder)
        if not len(found.rows):
            raise HyCalError(f"{what} cannot be used: {found.skipped[0].reason}.")
        return found.rows[0], found.keys[0]
    if not pile.encoder.has_text:
        labels = () if project is None else project.state.labels
        known = ", ".join([*map(str, labels[:5]), *(["..."] if len(labels) > 5 else [])])
        near = "" if project is None else nearest_name(project.state, what)
        raise HyCalError(
            f"{what!r} is no file and no class of the model{f' ({known})' if known else ''}.{near} Words cannot be "
            f"looked for: the encoder {pile.encoder.name!r} has no text tower. `hycal encoders list` shows others."
        )
    return pile.encoder.encode_texts([what])[0], b""


@report_errors
def duplicates_command(
    folder: PileFolder,
    distance: Annotated[
        float | None,
        typer.Option(
            help="Largest distance (1 - cosine) of two near-duplicates, and nothing else counts. By default 0.05 of "
            "the mean, or the same picture in another size or quality."
        ),
    ] = None,
    encoder: opt.NewEncoder = DEFAULT_ENCODER,
    weights: opt.Weights = None,
    cache: opt.CacheFolder = None,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Show groups of images that are copies of each other, or nearly: saved again, made smaller, or taken in a burst.

    Nothing is removed. "The same file" marks images that are equal to the first of their group, byte by byte. The
    distance is that of the embeddings: of a much smaller copy it may be large.

    Example: hycal duplicates pile --distance 0.01
    """
    from hycal.pile.search import duplicates

    pile = open_pile(None, folder, EncoderChoice(encoder, weights, cache), quiet=quiet)
    pictures = _small_pictures(pile, quiet) if distance is None else None
    alike = duplicates(pile.rows, distance=distance, pictures=pictures)
    groups = [[_member(pile, group[0], row) for row in group] for group in alike]
    if as_json:
        print_json({"groups": groups, "images": len(pile.files), "skipped": skipped_json(pile.skipped)})
        return
    print_skipped(pile.skipped)
    for group in groups:
        print_line(Console(), str(folder / group[0]["file"]))
        for member in group[1:]:
            how = "the same file" if member["same"] else f"distance {member['distance']:.4f}"
            print_line(Console(), f"  {folder / member['file']}: {how}")
    more = sum(len(group) - 1 for group in groups)
    print_line(Console(), f"{plural(len(groups), 'group')}, {plural(more, 'image')} more than needed")


def _small_pictures(pile: Pile, quiet: bool) -> Floats:
    """Return the small picture of each image; zeros for one that was removed or changed since it was embedded."""
    import numpy as np

    from hycal.embedding.decoding import decode, pillow_quiet
    from hycal.embedding.sources import ImageError
    from hycal.pile.search import PIXELS, small_picture

    pictures = np.zeros((len(pile.files), PIXELS), np.float32)
    with pillow_quiet():
        for row in counted(range(len(pile.files)), "comparing pictures", len(pile.files), quiet=quiet):
            with contextlib.suppress(ImageError):
                pictures[row] = small_picture(decode(pile.source(row).read(), enough=64))
    return pictures


def _member(pile: Pile, first: int, row: int) -> dict[str, Any]:
    distance = max(0.0, 1.0 - float(pile.rows[first] @ pile.rows[row]))
    return {"file": pile.files[row], "distance": distance, "same": pile.keys[first] == pile.keys[row]}
