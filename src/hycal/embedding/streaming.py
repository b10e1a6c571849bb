"""Embeddings one after the other, as soon as they are there; memory does not grow with the number of images."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from hycal.embedding.decoding import MOST_PIXELS
from hycal.embedding.pipeline import BATCH, _check_space, _in_order, _pillow_quiet, _prepare, _Run
from hycal.embedding.sources import ImageSource
from hycal.embedding.store import EmbeddingStore, MemoryStore
from hycal.encoders.protocol import Encoder
from hycal.validation import Floats

_MOST_WAITING = 64


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
    """Yield the embedding of each image, using and filling `store`; parameters as `embed`."""
    store = MemoryStore(encoder) if store is None else store
    _check_space(store, encoder)
    known = store.known()
    run = _Run(encoder=encoder, store=store, known=known, batch=batch)
    prepare = partial(_prepare, encoder=encoder, known=known, most_pixels=most_pixels)
    outcomes = _in_order(prepare, sources, threads, ahead=2 * batch)
    told = 0
    with _pillow_quiet(), contextlib.closing(outcomes), contextlib.ExitStack() as stack:
        stack.callback(run.flush)  # whatever happens, keep the rows there are
        for outcome in outcomes:
            run.take(outcome)
            if len(run.keys) - told >= _MOST_WAITING:
                run.encode_waiting()
            if not run.waiting:
                yield from _settled(run, told)
                told = len(run.keys)
        run.encode_waiting()
        yield from _settled(run, told)


def _settled(run: _Run, first: int) -> Iterator[Streamed]:
    for number in range(first, len(run.keys)):
        found = run.outcome(number)
        row, problem = (None, found) if isinstance(found, str) else (found, None)
        yield Streamed(number, run.keys[number], row, problem)
