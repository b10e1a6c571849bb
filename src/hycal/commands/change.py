"""`hycal rename`, `forget`, `undo`, `merge`: a model is changed, with a receipt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hycal.commands._options import CacheFolder, FirstModel, Json, Model, NewModel
from hycal.commands._output import print_line, print_receipt, report_errors
from hycal.embedding.cache import embeddings_folder, forget_images
from hycal.embedding.sources import ImageFile, content_hash
from hycal.project import Project
from hycal.project.changes import merge


@report_errors
def rename_command(
    model: Model,
    old: Annotated[str, typer.Argument(metavar="OLD", help="A class as domain/class, or a domain.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.")],
    as_json: Json = False,
) -> None:
    """Rename a class or a whole domain. No answer changes but for its name.

    Example: hycal rename photos.hycal flower/tulip flower/lily
    """
    project = Project(model)
    print_receipt(project, project.rename(old, new), as_json=as_json)


@report_errors
def forget_command(
    model: Model,
    what: Annotated[
        str,
        typer.Argument(
            metavar="CLASS|DOMAIN|IMAGE", help="A class, a domain, or an image: its file, its content hash or its name."
        ),
    ],
    for_good: Annotated[
        bool,
        typer.Option("--for-good", help="Also empty the undo and clear the cache: nothing of it stays."),
    ] = False,
    cache: CacheFolder = None,
    as_json: Json = False,
) -> None:
    """Forget a class, a domain or one image, exactly: the model becomes the one that never saw it.

    The receipt shows the model's hash before and after; a model that was never taught it has that same hash. Until
    --for-good is given, `hycal undo` can bring it back, so its data is still in the file, and its embedding in the
    cache; --for-good can be asked for later as well. The images themselves are yours: hycal never touches them.

    Where a domain and a class of another one share a name, `flower/` is the domain.

    Example: hycal forget photos.hycal flower/tulip
    """
    project = Project(model)
    path = Path(what)
    name = content_hash(ImageFile(path).read()) if path.is_file() else what
    if not for_good:
        print_receipt(project, project.forget(name), as_json=as_json)
        if not as_json:
            print_line(Console(), "`hycal undo` reverses this; after --for-good nothing can")
        return
    folder, removed = cache or embeddings_folder(), 0

    def erase(lost: set[bytes]) -> None:
        nonlocal removed
        removed = forget_images(folder, lost)

    receipt = project.forget_for_good(name, erase)
    print_receipt(project, receipt, as_json=as_json, more={"cache": str(folder), "removed_from_cache": removed})
    if not as_json:
        print_line(Console(), "Nothing of what was forgotten is left in the file; the undo is empty.")
        print_line(Console(), f"{removed:,} embeddings were removed from the cache {folder}.")


@report_errors
def undo_command(model: Model, as_json: Json = False) -> None:
    """Take back the last change, exactly; again, and the one before it.

    Example: hycal undo photos.hycal
    """
    project = Project(model)
    print_receipt(project, project.undo(), as_json=as_json)


@report_errors
def merge_command(
    first: FirstModel,
    second: Annotated[Path, typer.Argument(metavar="B", help="Another model, learned with the same encoder.")],
    out: NewModel,
    as_json: Json = False,
) -> None:
    """Make the model that learned all that two models learned; an image that both know counts once.

    Example: hycal merge mine.hycal yours.hycal --out ours.hycal
    """
    following, receipt = merge(Project(first).state, Project(second).state)
    print_receipt(Project.create(out, following), receipt, as_json=as_json)
