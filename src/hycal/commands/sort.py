"""`hycal sort` and `hycal unsort`: a pile into class folders, and back."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from hycal.commands import _options as opt
from hycal.commands._inputs import EncoderChoice, check_share, check_some_share, open_project
from hycal.commands._output import (
    FOUND_SOMETHING,
    ask_or_stop,
    confirm,
    counting,
    is_watched,
    plural,
    print_json,
    print_line,
    print_skipped,
    report_errors,
    skipped_json,
)
from hycal.commands._pile import Pile, PileFolder, open_pile
from hycal.errors import HyCalError
from hycal.pile.manifest import LAYOUTS, Layout, Manifest, PlannedMove, Way, read_manifest
from hycal.storage.atomic import check_folder

if TYPE_CHECKING:
    from hycal.embedding import Skipped
    from hycal.pile.moves import Problem
    from hycal.pile.sorting import ImageToSort
    from hycal.project import Project

SortedFolder = Annotated[Path, typer.Option("--out", help="Folder to sort into; made if there is none.")]


@report_errors
def sort_command(
    model: opt.Model,
    folder: PileFolder,
    out: SortedFolder,
    copy: Annotated[bool, typer.Option("--copy", help="Copy the images; FOLDER stays as it is.")] = False,
    move: Annotated[bool, typer.Option("--move", help="Move the images; `hycal unsort` moves them back.")] = False,
    link: Annotated[bool, typer.Option("--link", help="Make links to the images; FOLDER stays as it is.")] = False,
    error: Annotated[
        float,
        typer.Option(
            callback=check_some_share,
            help="Share of wrong images to expect in the class folders; the doubtful go to unsure/.",
        ),
    ] = 0.05,
    unknown: Annotated[
        float,
        typer.Option(
            callback=check_share,
            help="Share of images of learned classes that may go to unknown/ by error; 0: none goes.",
        ),
    ] = 0.05,
    layout: Annotated[
        str, typer.Option(help="folders: DOMAIN/CLASS/x.jpg. imagefolder: classes/CLASS/x.jpg. coco: images/x.jpg.")
    ] = "folders",
    as_csv: Annotated[bool, typer.Option("--csv", help="Also write OUT/sorted.csv, a line for each image.")] = False,
    xmp: Annotated[bool, typer.Option("--xmp", help="Also write x.jpg.xmp: keywords for photo programs.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and touch nothing.")] = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
    strict: opt.StrictSkips = False,
    encoder: opt.ModelEncoder = None,
    weights: opt.Weights = None,
    cache: opt.CacheFolder = None,
) -> None:
    """Sort the images of a folder into class folders, with those that fit no class and the doubtful ones aside.

    OUT gets a folder for each class, unknown/ for images unlike anything learned, and unsure/ for images whose class is
    doubtful. Names are kept; where two are the same, a number follows. No file is ever replaced. Files that are no
    images stay where they are; links are never moved.

    OUT/hycal-sort.jsonl says what went where before the first file is touched. A run that was interrupted, even killed,
    is finished by the same command, which also sorts images that came since. `hycal unsort OUT` puts everything back.

    Ends with 0 when all is done, 1 when it is not, 2 for a wrong option, 3 with --strict when a file was left out.

    Example: hycal sort photos.hycal new --out sorted --copy --error 0.02
    """
    from hycal.pile.sorting import extended, new_manifest, sort_images  # here, so that --help does not wait for it

    way = _way(copy, move, link)
    kind = _layout(layout)
    check_folder(out)
    project = open_project(model)
    fresh = new_manifest(folder, out, way=way, layout=kind, csv=as_csv)
    before = read_manifest(out)
    _check_same(out, before, fresh)
    if not project.state.classes:
        raise HyCalError(f"{model} has no classes yet, so nothing can be sorted. Learn some images first.")
    choice = EncoderChoice(encoder, weights, cache)
    pile = open_pile(project, folder, choice, quiet=quiet, may_be_empty=before is not None)
    if len(project.state.labels) == 1:
        note = "the model knows one class alone: an image is of that class, or unknown, and no estimate says more"
        print_line(Console(stderr=True), note, label="note", style="yellow")
    images, left = _decisions(project, pile, fresh, error, unknown or None)
    problems: list[Problem] = []
    if dry_run:
        manifest = extended(before or fresh, out, images, sidecars=xmp)
    else:
        with counting("sorting", quiet=quiet) as watch:
            manifest, problems = sort_images(out, fresh, images, sidecars=xmp, watch=watch)
    new = manifest.entries[0 if before is None else before.done :]
    _report(out, manifest, new, problems, (*pile.skipped, *left), dry_run=dry_run, as_json=as_json)
    if problems or (strict and (pile.skipped or left)):
        raise typer.Exit(1 if problems else FOUND_SOMETHING)


@report_errors
def unsort_command(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A folder that `hycal sort` made.")],
    yes: opt.Yes = False,
    quiet: opt.Quiet = False,
) -> None:
    """Put everything back as it was before `hycal sort`, by the list that it kept.

    Moved images go back to their old places, copies and links are removed, and so are the folders that were made. A
    copy that was changed, or whose original is gone or was changed, stays and is named, and so does a moved image whose
    old place is taken. A run that was interrupted is finished by the same command.

    Example: hycal unsort sorted
    """
    from hycal.pile.moves import undo_sort

    if not out.is_dir():
        raise HyCalError(f"There is no folder {out}. Expected one that `hycal sort` made.")
    planned = read_manifest(out)
    if planned is not None and planned.way == "move" and not yes:
        if not is_watched():  # the list may come from someone else, and says where files go
            raise HyCalError(
                f"{plural(len(planned.entries), 'image')} would be moved to {planned.folder}, and nobody can be asked "
                "here. Nothing was changed. If that is where they came from, pass --yes."
            )
        ask_or_stop(f"Move {plural(len(planned.entries), 'image')} back to {planned.folder}?")
    with counting("undoing", quiet=quiet) as watch:
        manifest, problems = undo_sort(out, watch=watch)
    _print_problems(problems)
    confirm(f"unsort: {plural(len(manifest.entries), 'image')} of {manifest.folder} {_BACK[manifest.way]}")
    if problems:
        raise typer.Exit(1)


_BACK = {"move": "back in place", "copy": "no longer copied", "link": "no longer linked"}


def _way(copy: bool, move: bool, link: bool) -> Way:
    wanted: dict[Way, bool] = {"copy": copy, "move": move, "link": link}
    chosen = [way for way, asked in wanted.items() if asked]
    if len(chosen) != 1:
        raise typer.BadParameter(f"choose {'only one' if chosen else 'one'} of --copy, --move and --link")
    return chosen[0]


def _layout(name: str) -> Layout:
    for layout in LAYOUTS:
        if layout == name:
            return layout
    raise typer.BadParameter(f"{name!r} is unknown; expected one of {', '.join(LAYOUTS)}", param_hint="--layout")


def _check_same(out: Path, old: Manifest | None, fresh: Manifest) -> None:
    """Refuse to sort another folder, or in another way, into a folder that is sorted already."""
    if old is None:
        return
    mine, theirs = ((each.folder, each.way, each.layout, each.written) for each in (fresh, old))
    if mine != theirs:
        raise HyCalError(
            f"{out} was sorted from {old.folder} with --{old.way} --layout {old.layout}"
            f"{' --csv' if 'sorted.csv' in old.written else ''}, and goes on only so. Nothing was changed. Use the "
            "same options, undo it with `hycal unsort`, or choose another --out."
        )


def _decisions(
    project: Project, pile: Pile, manifest: Manifest, error: float, unknown: float | None
) -> tuple[list[ImageToSort], list[Skipped]]:
    """Return where each image belongs, and the files that stay where they are."""
    from hycal.embedding import Skipped
    from hycal.pile.sorting import ImageToSort, decide

    taught = {row: project.state.label_of[key] for row, key in enumerate(pile.keys) if key in project.state.label_of}
    found = decide(project.state.classifier, pile.rows, error=error, unknown=unknown, known=taught)
    images, left = [], []
    for file, key, decision in zip(pile.files, pile.keys, found, strict=True):
        path = manifest.folder / file
        if manifest.way == "move" and os.path.realpath(path) != str(path):
            left.append(Skipped(str(pile.folder / file), "reached by a link; --move moves the files of FOLDER alone"))
        else:
            images.append(ImageToSort(file, key, decision))
    return images, left


def _report(
    out: Path,
    manifest: Manifest,
    new: Sequence[PlannedMove],
    problems: Sequence[Problem],
    skipped: Sequence[Skipped],
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    places = Counter(entry.place for entry in new)
    if as_json:
        images = [{"file": entry.source, **{key: getattr(entry, key) for key in _SHOWN}} for entry in new]
        stayed = [{"file": str(problem.file), "reason": problem.reason} for problem in problems]
        about = {"out": str(out), "way": manifest.way, "dry_run": dry_run, "places": dict(places)}
        print_json({**about, "images": images, "problems": stayed, "skipped": skipped_json(skipped)})
        return
    print_skipped(skipped, rest="")
    _print_problems(problems)
    if dry_run:
        for entry in new:
            print_line(Console(), f"{entry.source} -> {entry.target} ({entry.label} {entry.probability:.1%})")
    wrong = sum(1.0 - entry.probability for entry in new if entry.place == "sorted")
    rate = f", {wrong / places['sorted']:.1%} of them wrong by estimate" if places["sorted"] else ""
    classes = len({entry.label for entry in new if entry.place == "sorted"})
    verb = f"would {manifest.way}" if dry_run else f"{manifest.way}:"
    confirm(
        f"{verb} {plural(len(new), 'image')} to {out}: {places['sorted']:,} to {plural(classes, 'class', 'classes')}"
        f"{rate}; {places['unsure']:,} unsure, {places['unknown']:,} unknown"
        + (f"; {len(manifest.entries) - len(new):,} were there already" if len(manifest.entries) > len(new) else ""),
        *([] if dry_run else [f"`hycal unsort {out}` puts everything back"]),
    )


_SHOWN = ("target", "place", "label", "probability")


def _print_problems(problems: Sequence[Problem]) -> None:
    for problem in problems:
        print_line(Console(stderr=True), f"{problem.file}: {problem.reason}", label="stayed", style="yellow")
