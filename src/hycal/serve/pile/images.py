"""The images of a pile: files of the folder that `hycal serve --pile` names, or images that clients dropped.

Dropped images are kept in a folder of temporary files until the server ends. All are embedded in the background, those
of a folder in an order that is spread over it, so that the first ones stand for all, and through the embedding cache.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Collection, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from hycal.embedding.preparation import isolated
from hycal.embedding.sources import ImageError, content_hash
from hycal.embedding.store import Skipped
from hycal.errors import HyCalError, StorageError
from hycal.escaping import file_name, visible
from hycal.parallel.threads import thread_pool
from hycal.project import Example
from hycal.project.labels import LONGEST_NAME
from hycal.project.learner import Learner
from hycal.serve.pile.files import CachedRows, PileFile, files_of, remove, spread
from hycal.validation import Floats

MOST_SKIPPED = 1000  # files that are named with the reason; the others are counted
_AT_ONCE = 16  # images that are embedded before others may use the encoder


@dataclass(frozen=True)
class PileLimits:
    """What a pile may hold: images, and bytes of images that were dropped."""

    images: int = 20_000
    bytes: int = 4 * 2**30
    image_bytes: int = 32 * 2**20
    image_pixels: int = 50_000_000


@dataclass(frozen=True, eq=False)
class PileImage:
    """A file with its embedding."""

    file: PileFile
    example: Example

    @property
    def key(self) -> bytes:
        """The content hash."""
        return self.example.key


@dataclass(frozen=True, eq=False)
class PileView:
    """The embedded images at one moment; `complete` once no file waits."""

    images: tuple[PileImage, ...]
    complete: bool

    @cached_property
    def rows(self) -> Floats:
        """The embeddings, (n, d)."""
        return np.stack([image.example.row for image in self.images])


@dataclass(frozen=True)
class PileCounts:
    """Files of a pile: all, embedded, not usable, and left out because there are too many."""

    total: int
    embedded: int
    skipped: int
    left_out: int


class ImagePile:
    """The images of one server; safe to share between threads.

    Without a folder, the pile is what clients drop.
    """

    def __init__(self, folder: Path | None = None, limits: PileLimits | None = None) -> None:
        self.folder = folder
        self.limits = limits or PileLimits()
        self._lock = threading.Lock()
        self._learner: Learner | None = None
        self._rows: CachedRows | None = None
        self._started = False
        self._working: Future[None] | None = None
        self._remove_dropped: weakref.finalize[..., ImagePile] | None = None  # of the temporary files, also at exit
        self._dropped = Path()
        self._made = self._bytes = self._left_out = 0
        self._clear()
        if folder is not None:
            files = files_of(folder, self.limits.image_bytes)
            self._left_out = max(0, len(files) - self.limits.images)
            self._waiting.extend(spread(files)[: self.limits.images])

    def _clear(self) -> None:
        self._waiting: deque[PileFile] = deque()
        self._embedding: Sequence[PileFile] = ()
        self._images: list[PileImage] = []
        self._by_key: dict[bytes, PileImage] = {}
        self._forgotten: set[bytes] = set()  # for good; a copy may still wait
        self._skipped: deque[Skipped] = deque(maxlen=MOST_SKIPPED)
        self._n_skipped = 0
        self._problem = ""
        self._view: PileView | None = None

    @property
    def name(self) -> str:
        """The name of the folder, or "" for images that were dropped."""
        return "" if self.folder is None else visible(self.folder.absolute().name)

    def start(self) -> None:
        """Embed in the background from now on."""
        self._started = True
        self._go_on()

    def stop(self) -> None:
        """Embed nothing more; wait for the batch at hand, and until the cache has its rows."""
        self._started = False
        if self._learner is not None:
            wait([thread_pool(1, "hycal-pile").submit(int)])  # comes after all that was submitted before

    def use(self, learner: Learner) -> None:
        """Embed by `learner` from now on; what another one embedded is embedded again."""
        with self._lock:
            again = [*(image.file for image in self._images), *self._embedding]
            if self._learner is not None:
                self._waiting.extendleft(reversed(again))
                self._embedding, self._images, self._by_key, self._view = (), [], {}, None
            self._learner = learner
        self._go_on()

    def add(self, uploads: Sequence[tuple[str, bytes]]) -> None:
        """Add images that a client dropped: names to show, and contents."""
        if self.folder is not None:
            raise HyCalError(
                f"The pile of this server is the folder {self.name!r}, and nothing is added to it here. Put the images "
                "into that folder and start the server again, or start it without --pile."
            )
        size = sum(len(content) for _, content in uploads)
        with self._lock:
            if self._counts().total + len(uploads) > self.limits.images or self._bytes + size > self.limits.bytes:
                raise HyCalError(
                    f"The pile is full: it holds {self.limits.images:,} images and {self.limits.bytes:,} bytes. Sort "
                    "these first, or start the server with --pile FOLDER."
                )
            files = [self._keep(name, content) for name, content in uploads]
            self._bytes += size
            self._forgotten.difference_update(content_hash(content) for _, content in uploads)
            self._waiting.extend(files)
        self._go_on()

    def _keep(self, name: str, content: bytes) -> PileFile:
        try:
            if self._remove_dropped is None:
                self._dropped = Path(os.path.realpath(tempfile.mkdtemp(prefix="hycal-pile-")))
                self._remove_dropped = weakref.finalize(self, shutil.rmtree, self._dropped, ignore_errors=True)
            self._made += 1
            path = self._dropped / str(self._made)  # never a name that a client chose
            path.write_bytes(content)
        except OSError as error:
            raise StorageError(
                f"The images cannot be kept: {error.strerror or error}. Check that the server's folder of temporary "
                "files (TMPDIR) has room and may be written, then send them again."
            ) from None
        parts = [file_name(part) for part in name[-LONGEST_NAME:].split("/") if part]  # "..", too, is only a name
        return PileFile("/".join(parts) or "image", path, self._dropped, self.limits.image_bytes)

    def clear(self) -> None:
        """Remove all images that were dropped; the files of a folder stay where they are, and in the pile."""
        if self.folder is not None:
            raise HyCalError("The pile of this server is a folder, and stays. Start the server without --pile.")
        with self._lock:
            self._clear()
            self._bytes = 0
            if self._remove_dropped is not None:
                self._remove_dropped()
                self._remove_dropped = None

    def drop(self, keys: Collection[bytes]) -> None:
        """Remove images that were forgotten for good, copies that wait too; the files of a folder stay on the disk."""
        with self._lock:
            self._forgotten.update(keys)
            if self._rows is not None:
                self._rows.forget(keys)
            lost = [image for image in self._images if image.key in keys]
            if not lost:
                return
            self._images = [image for image in self._images if image.key not in keys]
            self._by_key = {image.key: image for image in reversed(self._images)}
            self._view = None
        if self.folder is None:
            remove(image.file for image in lost)

    def get(self, key: bytes) -> PileImage | None:
        """Return the image of this content hash, or None."""
        return self._by_key.get(key)

    def content(self, image: PileImage) -> bytes | None:
        """Return the file of an image; None if it was changed or removed since it was embedded."""
        try:
            found = image.file.read()
        except ImageError:
            return None
        return found if content_hash(found) == image.key else None

    def example(self, key: bytes) -> Example | None:
        """Return the embedding of the image of this content hash, or None."""
        found = self.get(key)
        return None if found is None else found.example

    def view(self) -> PileView:
        """Return the images that are embedded now."""
        with self._lock:
            complete = not self._waiting and not self._embedding
            if self._view is None or self._view.complete != complete:
                self._view = PileView(tuple(self._images), complete)
            return self._view

    @property
    def counts(self) -> PileCounts:
        """How many files there are, and how far they are embedded."""
        with self._lock:
            return self._counts()

    def _counts(self) -> PileCounts:
        total = len(self._waiting) + len(self._embedding) + len(self._images) + self._n_skipped
        return PileCounts(total, len(self._images), self._n_skipped, self._left_out)

    @property
    def skipped(self) -> list[Skipped]:
        """The last files that cannot be used, with the reason."""
        with self._lock:
            return list(self._skipped)

    @property
    def problem(self) -> str:
        """Why nothing is embedded, "" if nothing is wrong."""
        return self._problem

    def _go_on(self) -> None:
        """Embed in the background what waits, unless that is being done."""
        with self._lock:
            idle = self._working is None or self._working.done()
            if self._started and self._waiting and self._learner is not None and idle:
                self._working = thread_pool(1, "hycal-pile").submit(self._embed_all)

    def _embed_all(self) -> None:
        used: Learner | None = None
        try:
            while (batch := self._next_batch()) is not None:
                files, learner = batch
                if learner is not used:
                    self._open_rows(learner)
                    used = learner
                if not self._embedded(files, learner):
                    return
        finally:
            self._close_rows()

    def _next_batch(self) -> tuple[list[PileFile], Learner] | None:
        """Return the files to embed next, and by whom; None if there is nothing to do."""
        with self._lock:
            learner, self._problem = self._learner, ""
            if not self._waiting or learner is None or not self._started:
                self._embedding, self._working = (), None
                return None
            files = [self._waiting.popleft() for _ in range(min(_AT_ONCE, len(self._waiting)))]
            self._embedding = files
            return files, learner

    def _open_rows(self, learner: Learner) -> None:
        """Use the embedding cache for the files of a folder; what was dropped is kept nowhere."""
        self._close_rows()
        if self.folder is not None and learner.encoder is not None:
            rows = CachedRows.of(learner.encoder)
            with self._lock:
                self._rows = rows
                if rows is not None:
                    rows.forget(self._forgotten)

    def _close_rows(self) -> None:
        rows = self._rows
        if rows is not None:
            rows.close()
            with self._lock:
                self._rows = None

    def _embedded(self, files: list[PileFile], learner: Learner) -> bool:
        """Embed files, without the cache if that fails; return False if they cannot be embedded now."""
        try:
            try:
                self._embed(files, learner)
            except HyCalError:
                if self._rows is None:
                    raise
                self._close_rows()
                self._embed(files, learner)
        except (HyCalError, OSError) as error:
            with self._lock:
                if self._embedding is files:
                    self._waiting.extendleft(reversed(files))
                    self._embedding, self._problem, self._working = (), str(error), None
            return False
        return True

    def _embed(self, files: list[PileFile], learner: Learner) -> None:
        found = learner.embed(files, store=self._rows, most_pixels=self.limits.image_pixels, preparing=isolated())
        unusable = [files[number] for number in found.problems]
        with self._lock:
            if self._embedding is not files:  # cleared, or another encoder is in use
                return
            every = [PileImage(files[number], example) for number, example in found.examples.items()]
            lost = [image for image in every if image.key in self._forgotten]
            new = [image for image in every if image.key not in self._forgotten]
            self._images += new
            for image in new:
                self._by_key.setdefault(image.key, image)
            self._skipped.extend(found.skipped)
            self._n_skipped += len(unusable)
            self._embedding, self._view = (), None
        if self.folder is None:
            remove([*unusable, *(image.file for image in lost)])
