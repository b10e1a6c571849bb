"""Many images through an encoder: threads read, hash, decode and preprocess; the calling thread encodes.

Each image is read and decoded once. Batches follow the order of the sources, and an encoder guarantees that a row does
not depend on the other rows of its batch. So an interrupted and resumed run gives the same bytes as an uninterrupted
one. `embed` returns all rows at once; `stream` yields them one by one, in memory that does not grow.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from itertools import islice

import numpy as np

from hycal.embedding.decoding import MOST_PIXELS, TOO_LARGE, Thumbnails, pillow_quiet
from hycal.embedding.lanes import Inputs, Lane, lanes_of
from hycal.embedding.preparation import ImageOrder, Prepare, prepare
from hycal.embedding.sources import ImageSource, content_hash
from hycal.embedding.store import Embedded, EmbeddingStore, Outcomes, Tick, memory_store, space_fingerprint
from hycal.encoders.encoder import Encoder, present_columns
from hycal.errors import HyCalError
from hycal.parallel.threads import thread_pool
from hycal.validation import Floats

BATCH = 16
_STREAM_WAITING = 64  # images that `stream` takes before it encodes an incomplete batch
_STREAM_PART = 256  # images that `stream` remembers where it has no store


def embed(
    sources: Sequence[ImageSource],
    encoder: Encoder,
    *,
    store: EmbeddingStore | None = None,
    batch: int = BATCH,
    threads: int | None = None,
    most_pixels: int = MOST_PIXELS,
    watch: Callable[[Tick], None] | None = None,
    thumbnails: Thumbnails | None = None,
    preparing: Prepare = prepare,
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
    thumbnails : Thumbnails, optional
        Gets a thumbnail of each image that it wants one of.
    preparing : callable
        Decodes and preprocesses an image; see `hycal.embedding.preparation`.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> from hycal.embedding import ImageBytes
    >>> from hycal.encoders import load_encoder
    >>> picture = io.BytesIO()
    >>> Image.new("RGB", (64, 64), "teal").save(picture, "PNG")
    >>> embed([ImageBytes("teal.png", picture.getvalue())], load_encoder("builtin")).rows.shape
    (1, 512)
    """
    store = memory_store(encoder) if store is None else store
    run = _Run(encoder, store, batch=batch, most_pixels=most_pixels, thumbnails=thumbnails, preparing=preparing)
    with run.prepared(sources, threads) as prepared:
        run.take_all(prepared, len(sources), watch)
    return run.embedded(sources, store, run.encoded)


@dataclass(frozen=True, eq=False)
class Streamed:
    """One image of a stream: its row, or the reason for none."""

    row: Floats | None
    problem: str | None = None


def stream(
    sources: Iterable[ImageSource], encoder: Encoder, *, store: EmbeddingStore | None = None
) -> Iterator[Streamed]:
    """Yield the embedding of each image in order, using and filling `store`; parameters as for `embed`.

    Without a store, `stream` remembers the latest images only: an image that comes again later is encoded again.
    """
    if store is not None:
        yield from _stream(_Run(encoder, store), sources)
        return
    rest = iter(sources)
    while part := list(islice(rest, _STREAM_PART)):
        yield from _stream(_Run(encoder, memory_store(encoder)), part)


def _stream(run: _Run, sources: Iterable[ImageSource]) -> Iterator[Streamed]:
    with run.prepared(sources) as prepared:
        for image in prepared:
            run.take(image)
            if len(run.keys) >= _STREAM_WAITING:
                run.encode_waiting()
            if not run.waits:
                yield from run.pop_finished()
        run.encode_waiting()
        yield from run.pop_finished()


def _check_space(store: EmbeddingStore, encoder: Encoder) -> None:
    space = space_fingerprint(encoder)
    if store.fingerprint != space:
        raise HyCalError(
            f"The store holds rows of {store.fingerprint!r}, but encoder {encoder.name!r} gives {space!r}. "
            "Rows of two encoders cannot be compared: open the cache with `open_cache(encoder, folder)`."
        )


@dataclass(frozen=True, eq=False)
class _Prepared:
    """One source after reading: its key, the inputs of the lanes that lack its row, or a problem."""

    key: bytes = b""
    inputs: Sequence[tuple[Lane, Floats]] = ()
    problem: str | None = None


def _in_order(
    work: Callable[[ImageSource], _Prepared],
    sources: Iterable[ImageSource],
    threads: int | None,
    ahead: int,
) -> Generator[_Prepared]:
    """Yield `work(source)` of each source in order, with at most `ahead` results in memory."""
    pool = thread_pool(threads or os.cpu_count() or 1, "hycal-decode")
    waiting: deque[Future[_Prepared]] = deque()
    try:
        for source in sources:
            waiting.append(pool.submit(work, source))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        wait([future for future in waiting if not future.cancel()])


class _Run(Outcomes):
    """One run, with the options of `embed`; only the calling thread changes it."""

    def __init__(
        self,
        encoder: Encoder,
        store: EmbeddingStore,
        *,
        batch: int = BATCH,
        most_pixels: int = MOST_PIXELS,
        thumbnails: Thumbnails | None = None,
        preparing: Prepare = prepare,
    ) -> None:
        super().__init__()
        _check_space(store, encoder)
        self.encoder, self.batch, self.encoded = encoder, batch, 0
        self.lanes = lanes_of(encoder, store)
        self._most_pixels, self._thumbnails, self._preparing = most_pixels, thumbnails, preparing

    @contextlib.contextmanager
    def prepared(self, sources: Iterable[ImageSource], threads: int | None = None) -> Iterator[Iterator[_Prepared]]:
        """Yield the prepared images, in the order of the sources; at the end, or on an error, keep the new rows."""
        prepared = _in_order(self._prepare, sources, threads, ahead=2 * self.batch)
        with pillow_quiet(), contextlib.closing(prepared):
            try:
                yield prepared
            finally:
                for lane in self.lanes:
                    lane.flush()

    def _prepare(self, source: ImageSource) -> _Prepared:
        """Read, decode and preprocess one image; threads call it."""
        thumbnails = self._thumbnails
        try:
            content = source.read()
            key = content_hash(content)
            wanted = thumbnails if thumbnails is not None and thumbnails.wants(key) else None
            lacking = Inputs([lane for lane in self.lanes if key not in lane.known])
            if not lacking.lanes:
                if wanted is not None:
                    wanted.add_undecoded(key, content)
                return _Prepared(key)
            made = self._preparing(content, ImageOrder(lacking.preprocess, self._most_pixels, wanted is not None))
            if wanted is not None:
                wanted.add(key, made.thumbnail)
            return _Prepared(key, lacking.by_lane(made.tensor))
        except HyCalError as problem:
            return _Prepared(problem=str(problem))
        except MemoryError:
            return _Prepared(problem=TOO_LARGE)

    @property
    def waits(self) -> bool:
        """Whether an image waits for its batch to fill."""
        return any(lane.waiting for lane in self.lanes)

    def take_all(self, prepared: Iterable[_Prepared], total: int, watch: Callable[[Tick], None] | None) -> None:
        """Take every prepared image, and encode all of them."""
        for done, image in enumerate(prepared, start=1):
            if self.take(image) and watch is not None:
                watch(Tick(done, total, self.encoded, self.n_skipped))
        self.encode_waiting()
        if watch is not None:
            watch(Tick(total, total, self.encoded, self.n_skipped))

    def take(self, image: _Prepared) -> bool:
        """Take one prepared image, in order; return whether to report the progress now."""
        if image.problem is not None:
            self.problems[len(self.keys)] = image.problem
        elif image.inputs and image.key not in self.unusable:
            new = [lane.add(image.key, tensor) for lane, tensor in image.inputs]  # to every lane
            self.encoded += any(new)
        self.keys.append(image.key)
        full = [lane for lane in self.lanes if len(lane.waiting) == self.batch]
        self._encode(full)
        return bool(full) or len(self.keys) % 64 == 0

    def encode_waiting(self) -> None:
        """Encode the images that wait for their batch to fill."""
        self._encode(self.lanes)

    def _encode(self, lanes: Sequence[Lane]) -> None:
        for lane in lanes:
            unusable = lane.encode_waiting()
            self.encoded -= len(unusable.keys() - self.unusable.keys())
            self.unusable.update(unusable)

    def pop_finished(self) -> list[Streamed]:
        """Return the images taken so far, and forget them; none of them may be waiting."""
        finished = [self._finished(number, key) for number, key in enumerate(self.keys)]
        self.keys.clear()
        self.problems.clear()
        return finished

    def _finished(self, number: int, key: bytes) -> Streamed:
        problem = self.problems.get(number) or self.unusable.get(key)
        if problem:
            return Streamed(None, problem)
        row = np.zeros(self.encoder.dimension, np.float32)
        for own, lane in zip(present_columns(self.encoder), self.lanes, strict=True):
            row[own] = lane.row(key)
        return Streamed(row)
