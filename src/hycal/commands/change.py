"""`hycal rename`, `forget`, `undo`, `redo`: a model is changed, with a receipt; `merge`, `seal`: a new one is made."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from hycal.commands import _options as opt
from hycal.commands._inputs import open_project
from hycal.commands._output import ask_or_stop, class_count, print_json, print_line, print_receipt, report_errors
from hycal.errors import HyCalError

if TYPE_CHECKING:
    from hycal.project import HistoryEntry, State

_SHORTEST_CHANGE = 8
_CHANGE_HELP = "Only if this was the last {what}: its name in its receipt (--json), or the hash of the model after it."


@report_errors
def rename_command(
    model: opt.Model,
    old: Annotated[str, typer.Argument(metavar="OLD", help="A class as domain/class, or a domain.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.")],
    as_json: opt.Json = False,
) -> None:
    """Rename a class or a whole domain. No answer changes but for its name, unless classes come to another domain.

    Classes of one domain share what the method learns of a domain. So a domain that gets the name of another one, or a
    class that moves to another domain, may change answers; the receipt says so, and `hycal undo` takes it back.

    Example: hycal rename photos.hycal flower/tulip flower/lily
    """
    project = open_project(model)
    print_receipt(project, project.rename(old, new), as_json=as_json)


@report_errors
def forget_command(
    model: opt.Model,
    what: Annotated[
        str,
        typer.Argument(
            metavar="CLASS|DOMAIN|IMAGE", help="A class, a domain, or an image: its file, its content hash or its name."
        ),
    ],
    for_good: Annotated[
        bool,
        typer.Option(
            "--for-good", help="Also empty the undo and the cache: nothing of it stays, but in a sealed model."
        ),
    ] = False,
    cache: opt.CacheFolder = None,
    yes: opt.Yes = False,
    as_json: opt.Json = False,
) -> None:
    """Forget a class, a domain or one image, exactly: the model becomes the one that never saw it.

    The receipt shows the model's hash before and after; a model that was never taught it has that same hash. Until
    --for-good is given, `hycal undo` can bring it back, so its data is still in the file, and its embedding in the
    cache; --for-good can be asked for later as well. The images themselves are yours: hycal never touches them. A
    sealed model has no undo, and keeps the part that a class has in a covariance that it shares with others.

    Where a domain and a class of another one share a name, `flower/` is the domain.

    Example: hycal forget photos.hycal flower/tulip
    """
    from hycal.embedding.cache import embeddings_folder, forget_images
    from hycal.embedding.sources import ImageFile, content_hash
    from hycal.project.sealed import left_behind

    project = open_project(model)
    path = Path(what)
    name = content_hash(ImageFile(path).read()) if path.is_file() else what
    if not yes and _is_all(project.state, name):
        ask_or_stop(f"Nothing will be left in {project.path}. Forget it all?")
    elif not yes and for_good:
        ask_or_stop(f"Nothing can bring {what} back, and no earlier change can be undone then. Forget it for good?")
    before, folder, removed = project.state, cache or embeddings_folder(), 0

    def erase(lost: set[bytes]) -> None:
        nonlocal removed
        removed = forget_images(folder, lost)

    receipt = project.forget_for_good(name, erase) if for_good else project.forget(name)
    more: dict[str, Any] = {"cache": str(folder), "removed_from_cache": removed} if for_good else {}
    if before.sealed:
        more["stays"] = left_behind(before, receipt.images)
        notes = ["A sealed model has no undo: nothing brings it back.", more["stays"]]
        if for_good:
            notes.append(f"Nothing was removed from the cache {folder}: a sealed model does not know its images.")
    elif for_good:
        notes = [
            "Nothing of what was forgotten is left in the file; the undo is empty.",
            f"{removed:,} embeddings were removed from the cache {folder}.",
        ]
    else:
        notes = ["`hycal undo` reverses this; after --for-good nothing can."]
    print_receipt(project, receipt, as_json=as_json, more=more, notes=notes)


@report_errors
def undo_command(
    model: opt.Model,
    change: Annotated[str | None, typer.Argument(metavar="[CHANGE]", help=_CHANGE_HELP.format(what="change"))] = None,
    yes: opt.Yes = False,
    as_json: opt.Json = False,
) -> None:
    """Take back the last change, exactly; again, and the one before it. `hycal redo` makes it again.

    A program that may run it twice names the CHANGE, as its receipt does in `change`, or by 8 digits or more of the
    hash of the model that it made. If it was taken back already, or another change was made since, nothing is changed.

    Example: hycal undo photos.hycal 3f1c9a7e20bd
    """
    from hycal.project.state import change_title, last_undoable, undo_empties

    project = open_project(model)
    last = last_undoable(project.state.history)
    expected = _expected(last, change)
    if not yes and last is not None and undo_empties(project.state):
        ask_or_stop(f"Nothing will be left in {project.path}. Take back the {last.title}?")
    receipt = project.undo(expected=expected)
    note = f"Took back the {change_title(receipt.action, receipt.what)}. `hycal redo` makes it again."
    print_receipt(project, receipt, as_json=as_json, notes=[note])


@report_errors
def redo_command(
    model: opt.Model,
    change: Annotated[str | None, typer.Argument(metavar="[CHANGE]", help=_CHANGE_HELP.format(what="undo"))] = None,
    as_json: opt.Json = False,
) -> None:
    """Make the change again that the last undo took back, exactly; possible until another change is made.

    A program that may run it twice names the undo, as `hycal undo` takes the name of a change.

    Example: hycal redo photos.hycal
    """
    from hycal.project.state import change_title, last_redoable

    project = open_project(model)
    receipt = project.redo(expected=_expected(last_redoable(project.state.history), change))
    note = f"Made the {change_title(receipt.action, receipt.what)} again. `hycal undo` takes it back."
    print_receipt(project, receipt, as_json=as_json, notes=[note])


def _is_all(state: State, name: str | bytes) -> bool:
    """Whether a name stands for all that a model knows."""
    from hycal.project.labels import look_up

    found = look_up(state, name.hex() if isinstance(name, bytes) else name)
    return found is not None and not state.sealed and sum(map(len, found.images.values())) == state.n_images


def _expected(last: HistoryEntry | None, change: str | None) -> str | None:
    """Return the name of the change that an undo or a redo must reverse, which may be given by a part of its hash."""
    if last is None or change is None or len(change) < _SHORTEST_CHANGE or not last.after.startswith(change):
        return change
    return last.id


@report_errors
def merge_command(
    first: opt.FirstModel,
    second: Annotated[Path, typer.Argument(metavar="B", help="Another model, learned with the same encoder.")],
    out: opt.NewModel,
    as_json: opt.Json = False,
) -> None:
    """Make the model that learned all that two models learned; an image that both know counts once.

    Example: hycal merge mine.hycal yours.hycal --out ours.hycal
    """
    from hycal.project import Project
    from hycal.project.project import operations

    state, other = open_project(first).state, open_project(second).state
    if state.sealed or not other.sealed:  # an open model cannot take in a sealed one, whatever its views
        _check_views(first, state, second, other)
        _check_views(second, other, first, state)
    following, receipt = operations(state).merge(state, other)
    print_receipt(Project.create(out, following), receipt, as_json=as_json)


def _check_views(path: Path, state: State, more: Path, other: State) -> None:
    """Refuse to merge a model that lacks views which the other one has, and say how it gets them."""
    from hycal.project.encoder import adding_views, views_to_add

    lacking = views_to_add(state.space, [part.name for part in other.space.parts])
    if not lacking or type(state.classifier) is not type(other.classifier):
        return
    quoted = shlex.quote(str(path))
    how = f"Add it first: {adding_views(quoted, lacking)}"
    if state.sealed:
        how = f"A sealed model cannot get it; the model that it was sealed from can: {adding_views('MODEL', lacking)}"
    raise HyCalError(
        f"Cannot merge: {path} has embeddings of {state.space.name}, and {more} has those of {' and '.join(lacking)} "
        f"too. {how}. Nothing was changed."
    )


@report_errors
def seal_command(
    model: opt.Model,
    out: opt.NewModel,
    half: Annotated[bool, typer.Option("--half", help="Round numbers to half precision: half the bytes.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Write a copy to share: it answers as the model or nearly so, and holds no image, no file name, no history.

    Classes keep how many images they had, their mean, and what the method needs of their spread. The copy learns,
    forgets classes and merges. What needs single images, such as undo or another method, only the model itself can do.
    A model that is sealed already is copied without its history, and rounded if you say --half.

    Example: hycal seal photos.hycal --out small.hycal
    """
    from hycal.project import Project
    from hycal.project.sealed import describe, seal

    source = open_project(model)
    already = source.state.sealed
    reason = "" if already else source.state.classifier.scorer.sealing.reason
    sealed = Project.create(out, seal(source.state), precision="half" if half else "single")
    facts: dict[str, Any] = {
        "model": str(sealed.path),
        "hash": sealed.state.hash,
        "sealed_already": already,
        "holds": describe(sealed.state),
        "left_out": reason,
        "classes": len(sealed.state.labels),
        "bytes": sealed.path.stat().st_size,
        "bytes_before": source.path.stat().st_size,
    }
    if as_json:
        print_json(facts)
        return
    console = Console()
    done = f"{source.path} is sealed already; copied, without its history," if already else "sealed"
    print_line(console, f"{done} {class_count(facts['classes'])} in {sealed.path}: {facts['holds']}")
    print_line(console, f"{facts['bytes']:,} bytes; {facts['bytes_before']:,} before")
    if reason:
        print_line(console, reason, label="note", style="yellow")
