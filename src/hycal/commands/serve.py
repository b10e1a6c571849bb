"""`hycal serve`: a page and an HTTP API for one model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hycal.commands._inputs import check_method, model_encoder, new_project
from hycal.commands._options import ModelEncoder, NewMethod, Weights
from hycal.commands._output import class_count, plural, print_line, report_errors, working
from hycal.encoders.encoder import Encoder
from hycal.errors import HyCalError
from hycal.project import Project


@report_errors
def serve_command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model's file; made by the first change.")],
    host: Annotated[str, typer.Option(help="Address to listen on; any but this machine's own needs the token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8000,
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
    encoder: ModelEncoder = None,
    method: NewMethod = None,
    weights: Weights = None,
    pile: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder of images to label and sort on the page; clients may see them."),
    ] = None,
) -> None:
    """Open a page to classify images, correct answers, learn folders, label and sort a pile, forget and undo.

    The page and its API listen on this machine alone, unless --host says otherwise; then everybody needs the token.
    With --label-studio it also predicts the tasks of projects of Label Studio, and learns their annotations.
    Stop it with Ctrl+C: every change was on the disk before it was answered.

    Example: hycal serve photos.hycal
    """
    from hycal.extras import load_extra

    for package in ("fastapi", "uvicorn", "httptools", "python_multipart", "msgspec"):
        load_extra(package, extra="serve", why="`hycal serve`")
    from hycal.serve.label_studio import LabelStudio
    from hycal.serve.pile.images import ImagePile
    from hycal.serve.security import Access
    from hycal.serve.server import backend_address, check_port, limit_heaps, link, run
    from hycal.serve.service import Service

    limit_heaps()
    access = Access.safe(host, token)
    images = ImagePile(pile)
    with working("loading the encoder"):
        project, loaded, problem = _open(model, encoder, weights, method)
    check_port(access, port)
    console = Console(stderr=True)
    state = project.state
    print_line(
        console,
        f"{model}: {class_count(len(state.labels))}, {plural(state.n_images, 'image')}, "
        f"method {type(state.classifier).__name__}, encoder {state.space.name!r}",
    )
    if problem:
        print_line(console, f"embeddings only: {problem}", label="warning", style="yellow")
    service = Service(project, loaded, why_no_encoder=problem, pile=images)
    backend = None if label_studio is None else LabelStudio(service, label_studio)
    print_line(console, link(access, port), label="open", style="green")
    if backend is not None:
        print_line(console, backend_address(access, port), label="Label Studio", style="green")
    run(service, access, port, label_studio=backend)


def _open(
    model: Path, encoder: str | None, weights: Path | None, method: str | None
) -> tuple[Project, Encoder | None, str]:
    """Return the project, its encoder, and why there is none: a model without its encoder still takes embeddings."""
    if not model.exists():
        return *new_project(model, encoder, weights, method=method, journal=True), ""
    project = Project(model, journal=True)
    check_method(project, method)
    try:
        return project, model_encoder(project.state, encoder, weights), ""
    except HyCalError as problem:
        if encoder is not None or weights is not None:
            raise
        return project, None, str(problem)
