"""What the commands on models share: opening, the encoder that belongs to one, results for people and for programs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from hycal.commands._output import say
from hycal.embedding import EmbeddingCache, Skipped
from hycal.encoders.protocol import Encoder
from hycal.errors import HyCalError
from hycal.project import Project, Receipt, State
from hycal.project.evaluation import Score
from hycal.project.images import check_encoder

FOUND_SOMETHING = 3
INTERRUPTED = 130
_SHOWN = 10

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="The model's file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
EncoderName = Annotated[
    str | None, typer.Option("--encoder", help="An encoder of `hycal encoders list`; by default the model's own.")
]
Weights = Annotated[Path | None, typer.Option(help="Folder or file with the encoder's weights.")]
CacheFolder = Annotated[Path | None, typer.Option("--cache", help="Folder of the embedding cache.")]


def load(name: str, weights: Path | None) -> Encoder:
    """Return an encoder; ONNX Runtime is imported no earlier."""
    from hycal.encoders import load_encoder

    return load_encoder(name, weights=weights)


def encoder_of(state: State, asked: str | None, weights: Path | None) -> Encoder:
    """Return the encoder that a model was learned with, or say why the one asked for is not it."""
    own = state.space.name
    if not own and asked is None:
        raise HyCalError("This model does not say which encoder made its embeddings. Name it with --encoder.")
    if own and asked not in (None, own):
        raise HyCalError(
            f"This model was learned with encoder {own!r}, so {asked!r} cannot be used with it: their embeddings "
            f"cannot be compared. Leave --encoder out, or learn the images again into a new model."
        )
    encoder = load(asked or own, weights)
    check_encoder(state, encoder)
    return encoder


@contextlib.contextmanager
def embedding_cache(encoder: Encoder, folder: Path | None) -> Iterator[EmbeddingCache]:
    """Open the embedding cache; tell what is kept if somebody interrupts."""
    from hycal.encoders.files import embeddings_folder

    with EmbeddingCache.of(encoder, folder or embeddings_folder()) as store:
        try:
            yield store
        except KeyboardInterrupt:
            kept = f"{len(store):,} embeddings are kept. Run the same command again to go on."
            say(Console(stderr=True), f"interrupted; the model is as it was, and {kept}")
            raise typer.Exit(INTERRUPTED) from None


def print_json(value: Any) -> None:
    """Print one line of JSON; names that are no Unicode come out as escapes."""
    typer.echo(json.dumps(value))


def tell_skipped(skipped: Sequence[Skipped]) -> None:
    """Show what was left out and why, on standard error: the first few."""
    console = Console(stderr=True)
    for item in skipped[:_SHOWN]:
        say(console, f"{item.name}: {item.reason}", label="skipped", style="yellow")
    if len(skipped) > _SHOWN:
        say(console, f"... and {len(skipped) - _SHOWN:,} more; --json lists all of them")


def skipped_json(skipped: Sequence[Skipped]) -> list[dict[str, str]]:
    """Return what was left out as plain values."""
    return [{"file": item.name, "reason": item.reason} for item in skipped]


def score_json(score: Score) -> dict[str, Any]:
    """Return how many were right as plain values."""
    return {"right": score.right, "total": score.total, "accuracy": score.accuracy if score.total else None}


def receipt_json(project: Project, receipt: Receipt) -> dict[str, Any]:
    """Return a receipt as plain values."""
    return {
        "model": str(project.path),
        "action": receipt.action,
        "what": receipt.what,
        "before": receipt.before,
        "after": receipt.after,
        "changed": receipt.before != receipt.after,
        "images": {str(label): count for label, count in receipt.images.items()},
        "skipped": skipped_json(receipt.skipped),
        "undoable": receipt.undoable,
    }


def tell_receipt(project: Project, receipt: Receipt, *, as_json: bool, more: Mapping[str, Any] | None = None) -> None:
    """Print what a change did, with the model's hash before and after; programs are told `more`."""
    if as_json:
        print_json({**receipt_json(project, receipt), **(more or {})})
        return
    tell_skipped(receipt.skipped)
    console, state = Console(), project.state
    same = "; the model is the same" if receipt.before == receipt.after else ""
    say(console, f"{receipt.action}: {receipt.what}{same}")
    say(console, f"{project.path}: {len(state.labels):,} classes, {len(state.examples):,} images")
    say(console, f"model before {receipt.before}")
    say(console, f"model after  {receipt.after}")
