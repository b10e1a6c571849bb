"""`hycal hub`: models in the layout of the Hugging Face hub."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hycal.commands import _options as opt
from hycal.commands._inputs import EncoderChoice, embed_held_out
from hycal.commands._lazy import Subcommands
from hycal.commands._output import class_count, confirm, counting, print_line, print_skipped, report_errors, working
from hycal.errors import HyCalError
from hycal.hub import CardFacts, fetch, open_folder, push, save_folder
from hycal.hub.card import judge
from hycal.hub.folder import check_repository
from hycal.project import Project, State
from hycal.project.evaluation import Score, best_labels, evaluate
from hycal.project.inputs import held_out_images
from hycal.project.sealed import describe, seal

app = Subcommands(no_args_is_help=True, help="Share a model on the Hugging Face hub, or take one from it.")

Licence = Annotated[str, typer.Option("--licence", "--license", help="As the hub calls it: mit, cc-by-4.0, ...")]
Test = Annotated[
    Path | None, typer.Option("--test", help="Folder of labelled test images: their accuracy goes into the card.")
]
Open = Annotated[
    bool, typer.Option("--open", help="Share embeddings, thumbnails and file names of images, too; no history.")
]


@app.command("save")
@report_errors
def save_command(
    model: opt.Model,
    folder: Annotated[Path, typer.Argument(help="The new folder.")],
    licence: Licence = "",
    test: Test = None,
    whole: Open = False,
    quiet: opt.Quiet = False,
) -> None:
    """Write a folder as the hub has them: the model, a card that is made from it, and a small configuration.

    The copy is sealed: it answers, learns and merges, and holds no image, thumbnail or file name
    (docs/explanation/seal.md). With --open it has all of that, and no history. The card has the classes, the encoder,
    the accuracy with its interval, the limits, and what the file holds. Nothing is sent anywhere.

    Example: hycal hub save photos.hycal photos-hub --licence mit --test photos/test
    """
    shared, facts = _prepared(model, folder.name, licence=licence, test=test, whole=whole, quiet=quiet)
    save_folder(shared, folder, facts)
    confirm(
        f"{folder}: {class_count(len(shared.labels))}; it holds {_holds(shared)}",
        f"read {folder / 'README.md'}, its card, before you share it",
    )


@app.command("push")
@report_errors
def push_command(
    model: opt.Model,
    repository: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="The repository; made if there is none.")],
    licence: Licence = "",
    test: Test = None,
    whole: Open = False,
    public: Annotated[bool, typer.Option("--public", help="Let everyone see a new repository.")] = False,
    quiet: opt.Quiet = False,
) -> None:
    """Upload what `hycal hub save` would write to the Hugging Face hub; a new repository is private.

    It needs the extra `hub`, and a login: hf auth login.

    Example: hycal hub push photos.hycal me/photos --licence mit
    """
    check_repository(repository)
    name = repository.partition("/")[2]
    shared, facts = _prepared(model, name, licence=licence, test=test, whole=whole, quiet=quiet)
    with tempfile.TemporaryDirectory() as room, working(f"uploading to {repository}", quiet=quiet):
        address = push(save_folder(shared, Path(room) / name, facts), repository, public=public)
    confirm(f"{address}: {class_count(len(shared.labels))}; it holds {_holds(shared)}")


@app.command("load")
@report_errors
def load_command(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="OWNER/NAME on the hub, or a folder.")],
    out: opt.NewModel,
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit; the newest by default.")] = None,
    quiet: opt.Quiet = False,
) -> None:
    """Take a model from the hub, or from a folder of that layout. Nothing of it is executed.

    Example: hycal hub load me/photos --out photos.hycal
    """
    if Path(source).is_dir():
        folder = Path(source)
    else:
        with working(f"fetching {source}", quiet=quiet):
            folder = fetch(source, revision=revision)
    state = open_folder(folder)
    project = Project.create(out, state)
    confirm(f"{project.path}: {class_count(len(state.labels))} of {state.n_images:,} images; it holds {_holds(state)}")
    print_line(
        Console(), f"its encoder is {state.space.name or 'not named'}; `hycal encoders list` shows whether it is here"
    )


def _prepared(
    model: Path, name: str, *, licence: str, test: Path | None, whole: bool, quiet: bool
) -> tuple[State, CardFacts]:
    """Return the model as it is shared, and what its card says beside."""
    state = Project(model).state
    if not state.labels:
        raise HyCalError(f"{model} has no classes yet, so there is nothing to share. Learn a folder first.")
    with working("judging learned images", quiet=quiet):
        judged = judge(state)
    if whole or state.sealed:
        shared = state.with_history((), version=0)  # undo would show what was forgotten
    elif not (sealing := state.classifier.scorer.sealing).keeps:
        raise HyCalError(
            f"{type(state.classifier).__name__} cannot be sealed: {sealing.reason}. Share it with all "
            "its images by --open, or change the method: hycal remake."
        )
    else:
        shared = seal(state)
    return shared, CardFacts(name, licence, judged, None if test is None else _tested(state, shared, test, quiet=quiet))


def _tested(state: State, shared: State, folder: Path, *, quiet: bool) -> Score:
    """Return the right answers of the shared model on labelled images, none of which `state`, its origin, learned."""
    inputs = held_out_images(folder, state, domain=None, outside=False)
    asked = embed_held_out(inputs, state, EncoderChoice(None, None, None), summary=None, quiet=quiet)
    if asked.learned:
        raise HyCalError(f"{asked.learned:,} images of {folder} were learned, so they test nothing. Name other images.")
    with counting("scoring", len(asked.rows), quiet=quiet) as watch:
        answers = best_labels(shared, asked.rows, watch=watch)
    print_skipped((*inputs.left_out.all, *asked.skipped), rest="")
    return evaluate(shared, zip(asked.labels, answers, strict=True)).overall


def _holds(state: State) -> str:
    holds = describe(state)
    return "the embedding of every image, thumbnails and file names (seal it to share it)" if holds == "no" else holds
