"""`hycal embed`: from images to a table of embeddings."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

from hycal.commands.failing import told
from hycal.commands.progress import embedding_progress
from hycal.data.listing import ListedImage, list_images
from hycal.embedding import EmbeddingCache, EmbeddingTable, Skipped, embed, write_table
from hycal.embedding.pipeline import BATCH, Embedded
from hycal.embedding.store import space_of
from hycal.encoders.protocol import Encoder
from hycal.errors import HyCalError

_SHOWN = 10
SKIPPED_SOME = 3


Source = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", help="Folder of images, a .csv or .jsonl manifest, or images as .npz."),
]
Out = Annotated[Path, typer.Option(help="The .npz file to write.")]
Name = Annotated[str, typer.Option(help="Name of the encoder; `hycal encoders list` shows them.")]
Weights = Annotated[Path | None, typer.Option(help="Folder or file with the encoder's weights.")]
CacheFolder = Annotated[Path | None, typer.Option(help="Folder of the embedding cache; by default the user's.")]
Batch = Annotated[int, typer.Option(min=1, help="Images per call of the encoder.")]
Strict = Annotated[bool, typer.Option("--strict", help="End with code 3 if any file was skipped.")]


@told
def embed_command(
    source: Source,
    out: Out,
    encoder: Name = "builtin",
    weights: Weights = None,
    cache: CacheFolder = None,
    batch: Batch = BATCH,
    strict: Strict = False,
) -> None:
    """Embed every image in a folder, and write the embeddings to one .npz file.

    The names of the folders become labels: CLASS/x.jpg, DOMAIN/CLASS/x.jpg, DOMAIN/{train,test}/CLASS/x.jpg.
    Files that cannot be used never stop the run: OUT.skipped.csv lists them, each with its reason.

    Embeddings are cached by image content and encoder. A run that is interrupted, even killed, goes on where
    it was when you start it again, and an image that was seen before costs nothing.

    Ends with 0 when the table is written, 1 when there is nothing to write, 2 for a wrong option.

    Example: hycal embed photos --encoder clip-vit-b16-w8 --out photos.npz
    """
    console = Console(stderr=True)
    _check_out(out)
    images = list_images(source)
    model = _load(encoder, weights)
    result = _run(images, model, cache, batch, console)
    _report(out, result.skipped, console)
    if not len(result.rows):
        raise HyCalError(f"None of the {len(images)} files in {source} is an image that can be used.")
    write_table(out, _table(images, result, model))
    _say(console, f"{escape(str(out))}: {len(result.rows):,} embeddings of {model.dimension} numbers")
    if strict and result.skipped:
        raise typer.Exit(SKIPPED_SOME)


def _say(console: Console, line: str) -> None:
    console.print(line, highlight=False, soft_wrap=True)


def _check_out(out: Path) -> None:
    """Refuse a name that cannot be written before hours of work, not after."""
    if out.suffix != ".npz":
        raise HyCalError(f"--out is {out}; expected a name that ends in .npz.")
    if not out.absolute().parent.is_dir():
        raise HyCalError(f"Cannot write {out}: the folder {out.parent} does not exist. Make it first.")


def _load(name: str, weights: Path | None) -> Encoder:
    from hycal.encoders import load_encoder

    return load_encoder(name, weights=weights)


def _run(images: list[ListedImage], model: Encoder, cache: Path | None, batch: int, console: Console) -> Embedded:
    from hycal.encoders.files import cache_dir

    began = time.monotonic()
    with (
        EmbeddingCache.of(model, cache or cache_dir() / "embeddings") as store,
        embedding_progress(console, total=len(images)) as watch,
    ):
        result = embed([image.source for image in images], model, store=store, batch=batch, watch=watch)
    seconds = time.monotonic() - began
    _say(
        console,
        f"{len(images):,} files in {seconds:.1f} s: {result.encoded:,} images encoded with {model.name} "
        f"({result.encoded / seconds:.1f} images/s), {len(result.rows) - result.encoded:,} known already, "
        f"{len(result.skipped):,} skipped",
    )
    return result


def _report(out: Path, skipped: tuple[Skipped, ...], console: Console) -> None:
    """Write the report beside the table; without skipped files, remove that of an earlier run."""
    report = out.with_name(f"{out.name}.skipped.csv")
    if not skipped:
        report.unlink(missing_ok=True)
        return
    with report.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "reason"])
        writer.writerows((skip.name, skip.reason) for skip in skipped)
    for skip in skipped[:_SHOWN]:
        console.print(
            f"[yellow]skipped[/yellow] {escape(skip.name)}: {escape(skip.reason)}",
            highlight=False,
            soft_wrap=True,
        )
    if len(skipped) > _SHOWN:
        _say(console, f"... and {len(skipped) - _SHOWN:,} more")
    _say(console, f"all skipped files with their reasons: {escape(str(report))}")


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
