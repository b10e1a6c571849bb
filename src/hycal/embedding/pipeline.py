"""Many images through one encoder: threads read, hash, decode and preprocess; the calling thread encodes.

Batches follow the order of the sources, however the threads race, and an encoder promises that a row does
not depend on its neighbours. So a run that was killed and resumed gives the same bytes as one left alone.
"""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from PIL import Image

from hycal.embedding.decoding import MOST_PIXELS, decode
from hycal.embedding.outcomes import Embedded, Outcomes, Tick
from hycal.embedding.sources import ImageSource, content_hash
from hycal.embedding.store import EmbeddingStore, MemoryStore, space_of
from hycal.encoders.protocol import Encoder
from hycal.errors import HyCalError
from hycal.parallel.threads import kept_threads
from hycal.validation import Floats

BATCH = 16
_ROWS_PER_SHARD = 1024
_SECONDS_PER_SHARD = 15.0  # what a killed run can lose at most
TOO_LARGE = "too large for the memory"


def embed(
    sources: Sequence[ImageSource],
    encoder: Encoder,
    *,
    store: EmbeddingStore | None = None,
    batch: int = BATCH,
    threads: int | None = None,
    most_pixels: int = MOST_PIXELS,
    watch: Callable[[Tick], None] | None = None,
) -> Embedded:
    """Embed `sources`, using and filling `store`. An image that cannot be used is skipped, with its reason.

    Parameters
    ----------
    sources : sequence of ImageSource
    encoder : Encoder
    store : EmbeddingStore, optional
        An `EmbeddingCache` makes the run resumable; without one the rows live in memory.
    batch : int
        Images per call of the encoder.
    threads : int, optional
        Threads that decode; one per core if not given.
    most_pixels : int
        Larger images are skipped undecoded.
    watch : callable, optional
        Called in this thread after each batch and every few images.
    """
    store = MemoryStore(encoder) if store is None else store
    with begun(sources, encoder, store, batch, threads, most_pixels) as (run, outcomes):
        run.take_all(outcomes, len(sources), watch)
    return run.embedded(sources, store, run.encoded)


@contextlib.contextmanager
def begun(
    sources: Iterable[ImageSource],
    encoder: Encoder,
    store: EmbeddingStore,
    batch: int,
    threads: int | None,
    most_pixels: int,
) -> Iterator[tuple[Run, Iterator[Prepared]]]:
    """Yield a run and what becomes of its sources, in their order, prepared by threads while the run takes them.

    Whatever happens, the rows that the run has are kept.
    """
    _check_space(store, encoder)
    known = store.known()
    prepare = partial(_prepare, encoder=encoder, known=known, most_pixels=most_pixels)
    outcomes = _in_order(prepare, sources, threads, ahead=2 * batch)
    run = Run(encoder=encoder, store=store, known=known, batch=batch)
    with _pillow_quiet(), contextlib.closing(outcomes):
        try:
            yield run, outcomes
        finally:
            run.flush()


def _check_space(store: EmbeddingStore, encoder: Encoder) -> None:
    space = space_of(encoder)
    if store.fingerprint != space:
        raise HyCalError(
            f"The store holds rows of {store.fingerprint!r}, but encoder {encoder.name!r} gives {space!r}. "
            "Rows of two encoders cannot be compared: open the cache with EmbeddingCache.of(encoder, folder)."
        )


@dataclass(frozen=True, eq=False)
class Prepared:
    """One source after its thread: known already, ready to encode, or of no use."""

    key: bytes = b""
    tensor: Floats | None = None
    problem: str | None = None


def _prepare(source: ImageSource, encoder: Encoder, known: set[bytes], most_pixels: int) -> Prepared:
    try:
        content = source.read()
        key = content_hash(content)
        if key in known:
            return Prepared(key)
        return Prepared(key, encoder.preprocess(decode(content, most_pixels=most_pixels)))
    except HyCalError as problem:
        return Prepared(problem=str(problem))
    except MemoryError:
        return Prepared(problem=TOO_LARGE)


def _in_order(
    prepare: Callable[[ImageSource], Prepared],
    sources: Iterable[ImageSource],
    threads: int | None,
    ahead: int,
) -> Generator[Prepared]:
    """Yield `prepare` of each source in order, at most `ahead` of them waiting in memory."""
    pool = kept_threads(threads or os.cpu_count() or 1, "hycal-decode")
    waiting: deque[Future[Prepared]] = deque()
    try:
        for source in sources:
            waiting.append(pool.submit(prepare, source))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        wait([future for future in waiting if not future.cancel()])


def _encode_one_by_one(encoder: Encoder, batch: Floats) -> list[Floats | str]:
    """Return one row per image; the reason for an image that the encoder refuses."""
    rows: list[Floats | str] = []
    for image in batch:
        try:
            rows.append(encoder.encode(image[None])[0])
        except HyCalError as reason:
            rows.append(str(reason))
    return rows


def _works(encoder: Encoder) -> bool:
    """Whether the encoder takes a plain grey image. If it does not, no image is at fault."""
    try:
        encoder.encode(encoder.preprocess(Image.new("RGB", (64, 64), "grey"))[None])
    except HyCalError:
        return False
    return True


@contextlib.contextmanager
def _pillow_quiet() -> Iterator[None]:
    """Keep Pillow's remarks about odd files off the terminal: what matters is in the report."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="PIL")
        yield


@dataclass(eq=False, kw_only=True)
class Run(Outcomes):
    """The state of one run, touched by the calling thread only."""

    encoder: Encoder
    store: EmbeddingStore
    known: set[bytes]
    batch: int
    waiting: dict[bytes, Floats] = field(default_factory=dict)
    fresh: dict[bytes, Floats] = field(default_factory=dict)
    encoded: int = 0
    flushed_at: float = field(default_factory=time.monotonic)

    def take_all(self, outcomes: Iterable[Prepared], total: int, watch: Callable[[Tick], None] | None) -> None:
        """Take every outcome."""
        for done, outcome in enumerate(outcomes, start=1):
            if self.take(outcome) and watch is not None:
                watch(Tick(done, total, self.encoded, self.n_skipped))
        self.encode_waiting()
        if watch is not None:
            watch(Tick(total, total, self.encoded, self.n_skipped))

    def take(self, outcome: Prepared) -> bool:
        """Take one outcome, in order; True when it is a good moment to report."""
        if outcome.problem is not None:
            self.problems[len(self.keys)] = outcome.problem
        elif outcome.tensor is not None and outcome.key not in self.known and outcome.key not in self.unusable:
            self.waiting.setdefault(outcome.key, outcome.tensor)
        self.keys.append(outcome.key)
        if len(self.waiting) == self.batch:
            self.encode_waiting()
            return True
        return len(self.keys) % 64 == 0

    def encode_waiting(self) -> None:
        """Encode what waits for its batch to fill."""
        if not self.waiting:
            return
        keys = list(self.waiting)
        batch = np.stack(list(self.waiting.values()))
        rows: Sequence[Floats | str]
        try:
            rows = list(self.encoder.encode(batch))
        except HyCalError:  # one image may spoil its batch
            rows = _encode_one_by_one(self.encoder, batch)
            if all(isinstance(row, str) for row in rows) and not _works(self.encoder):
                raise
        self.waiting.clear()
        for key, row in zip(keys, rows, strict=True):
            if isinstance(row, str):
                self.unusable[key] = f"the encoder refused it: {row}"
            elif np.isfinite(row).all() and row.any():
                self.fresh[key] = row
                self.known.add(key)
                self.encoded += 1
            else:
                self.unusable[key] = "the encoder gave no finite, non-zero vector for it"
        if len(self.fresh) >= _ROWS_PER_SHARD or time.monotonic() - self.flushed_at > _SECONDS_PER_SHARD:
            self.flush()

    def flush(self) -> None:
        """Put the rows that are not there yet into the store."""
        if self.fresh:
            self.store.add(list(self.fresh), np.stack(list(self.fresh.values())))
            self.fresh.clear()
        self.flushed_at = time.monotonic()

    def outcome(self, number: int) -> Floats | str:
        """Return the row of an image that nobody waits for any more, or why it has none."""
        key = self.keys[number]
        problem = self.problems.get(number) or self.unusable.get(key)
        return problem or (self.fresh[key] if key in self.fresh else self.store.get([key])[0])
