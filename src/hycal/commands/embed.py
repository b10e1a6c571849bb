"""`hycal embed`: from images to a table of embeddings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hycal.commands import _options as opt
from hycal.commands._inputs import DEFAULT_ENCODER, embed_images
from hycal.commands._output import FOUND_SOMETHING, print_line, print_skipped, report_errors
from hycal.data.embedded import embedding_table
from hycal.data.readers import list_images
from hycal.data.samples import ListedImage
from hycal.embedding import Embedded, embed, embed_sharded, write_table
from hycal.embedding.pipeline import BATCH
from hycal.embedding.shards import encoder_of_worker
from hycal.embedding.table import check_table_target, skipped_report, write_skipped
from hycal.encoders import load_encoder
from hycal.encoders.catalog import Backend, augmented_name
from hycal.encoders.encoder import CombinedEncoder, TowerEncoder
from hycal.errors import HyCalError


@report_errors
def embed_command(
    source: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of images, a .csv or .jsonl manifest, or images as .npz.")
    ],
    out: Annotated[Path, typer.Option(help="The .npz file to write.")],
    encoder: opt.NewEncoder = DEFAULT_ENCODER,
    augment: opt.Augment = None,
    outside: opt.Outside = False,
    weights: opt.Weights = None,
    backend: opt.BackendName = "auto",
    cache: opt.CacheFolder = None,
    batch: Annotated[int, typer.Option(min=1, help="Images per call of the encoder.")] = BATCH,
    cluster: opt.Cluster = "",
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    strict: opt.StrictSkips = False,
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
    library = opt.check_backend(backend)
    if out.suffix != ".npz":
        raise HyCalError(f"--out is {out}; expected a name that ends in .npz.")
    check_table_target(out, force=force)
    images = _without_results(list_images(source, outside=outside), source, out)
    encoder = encoder if augment is None else augmented_name(encoder, augment)
    loaded = load_encoder(encoder, weights=weights, backend=library)
    way = _on_cluster(loaded, weights, library, cluster) if cluster else partial(embed, encoder=loaded)
    result = embed_images(
        [image.source for image in images],
        loaded,
        cache,
        summary=Console(stderr=True, quiet=quiet),
        way=partial(way, batch=batch),
        quiet=quiet,
    )
    report = write_skipped(out, result.skipped, force=force)
    if report is not None:
        print_skipped(result.skipped, rest="")
        print_line(console, f"all skipped files with their reasons: {report}")
    if not len(result.rows):
        raise HyCalError(f"None of the {len(images)} files in {source} is an image that can be used.")
    write_table(out, embedding_table(images, result, loaded), force=force)
    print_line(console, f"{out}: {len(result.rows):,} embeddings of {loaded.dimension} numbers")
    if strict and result.skipped:
        raise typer.Exit(FOUND_SOMETHING)


def _without_results(images: list[ListedImage], source: Path, out: Path) -> list[ListedImage]:
    """Return the images without the files that an earlier run wrote into their folder."""
    own = {path.absolute() for path in (out, skipped_report(out))}
    kept = [image for image in images if Path(image.source.name).absolute() not in own]
    if not kept:
        raise HyCalError(f"The folder {source} has no files in it but those that hycal wrote. Expected images.")
    return kept


def _on_cluster(
    encoder: TowerEncoder | CombinedEncoder, weights: Path | None, library: Backend | None, cluster: str
) -> Callable[..., Embedded]:
    """Return how to embed on a cluster, whose workers load the encoder themselves, on the same back ends as here."""
    backend = encoder.backend if isinstance(encoder, TowerEncoder) else library
    path = None if weights is None else weights.absolute()
    load = partial(encoder_of_worker, encoder.name, path, backend, encoder.fingerprint)
    return partial(embed_sharded, load=load, cluster=cluster)
