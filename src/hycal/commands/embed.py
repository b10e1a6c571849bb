"""`hycal embed`: from images to a table of embeddings."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from hycal.commands._inputs import DEFAULT_ENCODER, embed_images, load_encoder
from hycal.commands._options import BackendName, CacheFolder, Cluster, StrictSkips, Weights, check_backend
from hycal.commands._output import FOUND_SOMETHING, print_line, print_skipped, report_errors
from hycal.data.readers import ListedImage, list_images
from hycal.embedding import EmbeddingTable, Skipped, embed, embed_sharded, is_table, write_table
from hycal.embedding.pipeline import BATCH
from hycal.embedding.shards import encoder_of_worker
from hycal.embedding.store import Embedded, space_of
from hycal.encoders.catalog import Backend
from hycal.encoders.encoder import Encoder
from hycal.errors import HyCalError
from hycal.storage.atomic import write_whole


@report_errors
def embed_command(
    source: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of images, a .csv or .jsonl manifest, or images as .npz.")
    ],
    out: Annotated[Path, typer.Option(help="The .npz file to write.")],
    encoder: Annotated[str, typer.Option(help="Name of the encoder; `hycal encoders list` shows them.")] = (
        DEFAULT_ENCODER
    ),
    weights: Weights = None,
    backend: BackendName = "onnx",
    cache: CacheFolder = None,
    batch: Annotated[int, typer.Option(min=1, help="Images per call of the encoder.")] = BATCH,
    cluster: Cluster = "",
    strict: StrictSkips = False,
) -> None:
    """Embed every image in a folder, and write the embeddings to one .npz file.

    The names of the folders become labels: CLASS/x.jpg, DOMAIN/CLASS/x.jpg, DOMAIN/{train,test}/CLASS/x.jpg.
    Files that cannot be used never stop the run: OUT.skipped.csv lists them, each with its reason.

    Embeddings are cached by image content and encoder. A run that is interrupted, even killed, goes on where
    it was when you start it again, and an image that was seen before costs nothing.

    Ends with 0 when the table is written, 1 when it is not, 2 for a wrong option, 3 with --strict when
    a file was skipped, 130 when interrupted.

    Example: hycal embed photos --encoder clip-vit-b16-w8 --out photos.npz
    """
    console = Console(stderr=True)
    library = check_backend(backend)
    _check_out(out)
    images = _without_results(list_images(source), source, out)
    model = load_encoder(encoder, weights, library)
    way = _on_cluster(encoder, weights, library, cluster) if cluster else partial(embed, encoder=model)
    result = embed_images(
        [image.source for image in images], model, cache, summary=console, way=partial(way, batch=batch)
    )
    _report(out, result.skipped, console)
    if not len(result.rows):
        raise HyCalError(f"None of the {len(images)} files in {source} is an image that can be used.")
    write_table(out, _table(images, result, model))
    print_line(console, f"{out}: {len(result.rows):,} embeddings of {model.dimension} numbers")
    if strict and result.skipped:
        raise typer.Exit(FOUND_SOMETHING)


def _check_out(out: Path) -> None:
    """Refuse a name that cannot be written, or should not be, before hours of work and not after."""
    if out.suffix != ".npz":
        raise HyCalError(f"--out is {out}; expected a name that ends in .npz.")
    if not out.absolute().parent.is_dir():
        raise HyCalError(f"Cannot write {out}: the folder {out.parent} does not exist. Make it first.")
    if out.exists() and not is_table(out):
        raise HyCalError(
            f"{out} exists and is not a table of embeddings, so it is not replaced. Choose another name for --out."
        )
    try:
        tempfile.TemporaryFile(dir=out.absolute().parent).close()
    except OSError as error:
        raise HyCalError(
            f"Cannot write to the folder {out.parent}: {error.strerror}. Choose a folder that may be written."
        ) from None


def _report_of(out: Path) -> Path:
    return out.with_name(f"{out.name}.skipped.csv")


def _without_results(images: list[ListedImage], source: Path, out: Path) -> list[ListedImage]:
    """Leave out what an earlier run wrote into the folder of images itself."""
    own = {path.absolute() for path in (out, _report_of(out))}
    kept = [image for image in images if Path(image.source.name).absolute() not in own]
    if not kept:
        raise HyCalError(f"The folder {source} has no files in it but those that hycal wrote. Expected images.")
    return kept


def _on_cluster(encoder: str, weights: Path | None, library: Backend, cluster: str) -> Callable[..., Embedded]:
    """Return how to embed on a cluster, whose workers load the encoder themselves."""
    load = partial(encoder_of_worker, encoder, None if weights is None else weights.absolute(), library)
    return partial(embed_sharded, load=load, cluster=cluster)


def _report(out: Path, skipped: tuple[Skipped, ...], console: Console) -> None:
    """Write the report beside the table; without skipped files, remove that of an earlier run."""
    report = _report_of(out)
    if not skipped:
        report.unlink(missing_ok=True)
        return
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["file", "reason"])
    writer.writerows((skip.name, skip.reason) for skip in skipped)
    # A name that is not Unicode must not stop the run: its odd bytes are escaped.
    write_whole(report, text.getvalue().encode("utf-8", errors="backslashreplace"))
    print_skipped(skipped, rest="")
    print_line(console, f"all skipped files with their reasons: {report}")


def _table(images: list[ListedImage], result: Embedded, model: Encoder) -> EmbeddingTable:
    kept = [images[position] for position in result.kept]
    return EmbeddingTable(
        rows=result.rows,
        files=np.array([image.file for image in kept], dtype=np.str_),
        labels=np.array([image.label for image in kept], dtype=np.str_),
        domains=np.array([image.domain for image in kept], dtype=np.str_),
        splits=np.array([image.split for image in kept], dtype=np.str_),
        encoder=model.name,
        fingerprint=space_of(model),
    )
