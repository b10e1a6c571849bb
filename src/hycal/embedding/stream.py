"""Embeddings one after the other, as soon as they are there; memory does not grow with the number of images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import islice

from hycal.embedding.decoding import MOST_PIXELS
from hycal.embedding.pipeline import BATCH, Prepared, Run, begun
from hycal.embedding.sources import ImageSource
from hycal.embedding.store import EmbeddingStore, MemoryStore
from hycal.encoders.protocol import Encoder
from hycal.validation import Floats

_MOST_WAITING = 64
_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Streamed:
    """One image, in the order of the sources: its row and content hash, or the reason why it has none."""

    number: int
    key: bytes
    row: Floats | None
    problem: str | None


def stream(
    sources: Iterable[ImageSource],
    encoder: Encoder,
    *,
    store: EmbeddingStore | None = None,
    batch: int = BATCH,
    threads: int | None = None,
    most_pixels: int = MOST_PIXELS,
) -> Iterator[Streamed]:
    """Yield the embedding of each image, using and filling `store`; parameters as `embed`.

    Without a store nothing is remembered for long: an image that comes again much later is encoded again.
    """
    begin = partial(begun, encoder=encoder, batch=batch, threads=threads, most_pixels=most_pixels)
    if store is not None:
        yield from _stream(begin(sources, store=store), first=0)
        return
    rest, first = iter(sources), 0
    while part := list(islice(rest, _AT_ONCE)):
        yield from _stream(begin(part, store=MemoryStore(encoder)), first=first)
        first += len(part)


def _stream(beginning: AbstractContextManager[tuple[Run, Iterator[Prepared]]], *, first: int) -> Iterator[Streamed]:
    told = first
    with beginning as (run, outcomes):
        for outcome in outcomes:
            run.take(outcome)
            if len(run.keys) >= _MOST_WAITING:
                run.encode_waiting()
            if not run.waiting:
                told += len(run.keys)
                yield from _settled(run, told - len(run.keys))
        run.encode_waiting()
        yield from _settled(run, told)


def _settled(run: Run, first: int) -> Iterator[Streamed]:
    """Yield what the run has taken so far, none of it waiting, and let the run forget it."""
    keys, found = run.keys[:], [run.outcome(position) for position in range(len(run.keys))]
    run.keys.clear()
    run.problems.clear()
    for number, (key, outcome) in enumerate(zip(keys, found, strict=True), start=first):
        row, problem = (None, outcome) if isinstance(outcome, str) else (outcome, None)
        yield Streamed(number, key, row, problem)
