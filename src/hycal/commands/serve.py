"""`hycal serve`: a page and an HTTP API for one model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from hycal.commands import _options as opt
from hycal.commands._inputs import check_method, new_project, warn_of_missing_views
from hycal.commands._output import class_count, plural, print_line, report_errors, working
from hycal.errors import HyCalError

if TYPE_CHECKING:
    from hycal.encoders.encoder import Encoder
    from hycal.project import Project, State


@report_errors
def serve_command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model's file; made by the first change.")],
    host: Annotated[str, typer.Option(help="Address to listen on; any but this machine's own needs the token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=1, max=65535, envvar="HYCAL_PORT", help="Port to listen on.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(envvar="HYCAL_TOKEN", help="What clients must know; made and printed where it is needed."),
    ] = None,
    label_studio: Annotated[
        Path | None,
        typer.Option(
            "--label-studio", metavar="FOLDER", help="Be an ML back end of Label Studio; FOLDER has its images."
        ),
    ] = None,
    encoder: opt.ModelEncoder = None,
    method: opt.NewMethod = None,
    weights: opt.Weights = None,
    pile: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder of images to label and sort on the page; clients may see them."),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Answer questions, and refuse every change.")] = False,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes that answer; several need --read-only.")] = 1,
) -> None:
    """Open a page to classify images, correct answers, learn folders, label and sort a pile, forget and undo.

    The page and its API listen on this machine alone, unless --host says otherwise; then everybody needs the token.
    With --label-studio it also predicts the tasks of projects of Label Studio, and learns their annotations.
    With --read-only clients change nothing, and --workers N processes answer; they follow what commands change.
    Stop it with Ctrl+C: every change was on the disk before it was answered.

    Example: hycal serve photos.hycal
    """
    from hycal.errors import load_extra

    for package in ("fastapi", "uvicorn", "httptools", "python_multipart", "msgspec", "prometheus_client"):
        load_extra(package, extra="serve", why="`hycal serve`")
    changing = {"--label-studio": label_studio, "--pile": pile, "--method": method}
    _check_read_only(workers, [name for name, given in changing.items() if given is not None], read_only=read_only)
    from hycal.serve.app import make_app
    from hycal.serve.label_studio import LabelStudio
    from hycal.serve.pile.images import ImagePile
    from hycal.serve.security import Access
    from hycal.serve.server import backend_address, limit_heaps, link, listen, serve_on
    from hycal.serve.service import Service
    from hycal.serve.workers import ReadOnlyModel, run_workers

    limit_heaps()
    access = Access.safe(host, token)
    images = ImagePile(pile)
    with working("loading the encoder"):
        shared = ReadOnlyModel(model, encoder, weights, threads=max(1, (os.cpu_count() or 1) // workers))
        project, loaded, problem = shared.open() if read_only else _open(model, encoder, weights, method)
    door = listen(access, port)
    console = Console(stderr=True)
    _describe(console, model, project.state, problem, read_only=read_only)
    print_line(console, link(access, port), label="open", style="green")
    if workers > 1:
        del project, loaded, images  # each worker opens its own
        run_workers(shared, access, door, workers=workers)
        return
    service = Service(project, loaded, why_no_encoder=problem, pile=images)
    backend = None if label_studio is None else LabelStudio(service, label_studio)
    if backend is not None:
        print_line(console, backend_address(access, port), label="Label Studio", style="green")
    serve_on(door, make_app(service, access, label_studio=backend))


def _check_read_only(workers: int, changing: Sequence[str], *, read_only: bool) -> None:
    """Refuse options that do not go together."""
    if workers > 1 and not read_only:
        raise HyCalError(
            f"--workers is {workers}, and processes that change one model would wait for each other. Add --read-only, "
            "or leave --workers out: one process answers hundreds of requests a second."
        )
    if read_only and changing:
        raise HyCalError(
            f"{changing[0]} is for a server whose model changes, and --read-only refuses that. Leave one out."
        )


def _describe(console: Console, model: Path, state: State, problem: str, *, read_only: bool) -> None:
    print_line(
        console,
        f"{model}: {class_count(len(state.labels))}, {plural(state.n_images, 'image')}, "
        f"method {type(state.classifier).__name__}, encoder {state.space.name!r}{', read only' if read_only else ''}",
    )
    if problem:
        print_line(console, f"embeddings only: {problem}", label="warning", style="yellow")


def _open(
    model: Path, encoder: str | None, weights: Path | None, method: str | None
) -> tuple[Project, Encoder | None, str]:
    """Return the project, its encoder, and why there is none: a model without its encoder still takes embeddings."""
    from hycal.project import Project
    from hycal.project.encoder import encoder_if_any

    if not model.exists():
        return *new_project(model, encoder, weights, method=method, journal=True), ""
    project = Project(model, journal=True)
    check_method(project, method)
    loaded, problem = encoder_if_any(project.state, encoder, weights)
    if loaded is not None:
        warn_of_missing_views(loaded)
    return project, loaded, problem
