"""The files of a pile: where they are, what may be read of them, and their embeddings on the way to the cache.

A pile is embedded a few images at a time, and a shard of the embedding cache should hold many: rows wait in memory
until there are a thousand, or until the oldest has waited for 15 seconds. What is forgotten for good is never written.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from hycal.embedding.cache import EmbeddingCache, embeddings_folder
from hycal.embedding.sources import ImageError, ImageFile, pile_files
from hycal.encoders.encoder import Encoder
from hycal.errors import HyCalError
from hycal.validation import Floats

_SPREAD = (5**0.5 - 1) / 2  # multiples of it fill the interval evenly

_ROWS = 1024
_SECONDS = 15.0  # the most work that a killed server can lose


@dataclass(frozen=True)
class PileFile:
    """A file of a pile: the name to show, a path below the folder or what a client called it, and where it is."""

    name: str
    path: Path
    root: Path  # the folder that it may not lead out of
    most_bytes: int

    def read(self) -> bytes:
        """Return the content; an ImageError if it is too large, no file, or a link out of the folder by now."""
        if not Path(os.path.realpath(self.path)).is_relative_to(self.root):
            raise ImageError("a link that leads out of the folder")
        with contextlib.suppress(OSError):
            if (size := self.path.stat().st_size) > self.most_bytes:
                raise ImageError(f"{size:,} bytes; the limit is {self.most_bytes:,}")
        return ImageFile(self.path).read()


def spread(files: Sequence[PileFile]) -> list[PileFile]:
    """Return files in an order of which every beginning is spread evenly over all of them."""
    places = (np.arange(len(files)) * _SPREAD) % 1.0
    return [files[at] for at in np.argsort(places)]


def files_of(folder: Path, most_bytes: int) -> list[PileFile]:
    """Return the files below a folder. A link that leads out of it is left out: nobody gave leave to read there."""
    root = Path(os.path.realpath(folder))
    paths = [path for path in pile_files(root) if Path(os.path.realpath(path)).is_relative_to(root)]
    if not paths:
        raise HyCalError(f"The folder {folder} has no files in it. Expected images to label.")
    return [PileFile(path.relative_to(root).as_posix(), path, root, most_bytes) for path in paths]


def remove(files: Iterable[PileFile]) -> None:
    """Remove files, if they are there."""
    for file in files:
        file.path.unlink(missing_ok=True)


class CachedRows:
    """The rows of one encoder: an `EmbeddingStore`. One thread uses it; any thread may `forget`."""

    def __init__(self, cache: EmbeddingCache) -> None:
        self.fingerprint = cache.fingerprint
        self._cache = cache
        self._known = cache.known()
        self._waiting: dict[bytes, Floats] = {}
        self._forgotten: set[bytes] = set()
        self._written = time.monotonic()
        self._writing = threading.Lock()

    @classmethod
    def of(cls, encoder: Encoder) -> Self | None:
        """Open the user's cache; None where it cannot be used: then nothing is kept."""
        try:
            return cls(EmbeddingCache.of(encoder, embeddings_folder()))
        except HyCalError:
            return None

    def known(self) -> set[bytes]:
        """Return the content hashes that have a row."""
        return self._known

    def get(self, keys: Sequence[bytes]) -> Floats:
        """Return the rows of `keys`, in their order."""
        kept = [key for key in keys if key not in self._waiting]
        found = self._waiting | dict(zip(kept, self._cache.get(kept), strict=True))
        rows = np.empty((len(keys), self._cache.dimension), np.float32)
        for number, key in enumerate(keys):
            rows[number] = found[key]
        return rows

    def add(self, keys: Sequence[bytes], rows: Floats) -> None:
        """Keep `rows`, and write those that wait if it is time."""
        self._waiting.update(zip(keys, rows, strict=True))
        self._known.update(keys)
        if len(self._waiting) >= _ROWS or time.monotonic() - self._written > _SECONDS:
            self._write()

    def forget(self, keys: Collection[bytes]) -> None:
        """Write none of these any more; what is being written is written before this returns."""
        with self._writing:
            self._forgotten.update(keys)
            self._known.difference_update(keys)

    def close(self) -> None:
        """Write what waits, if the cache takes it, and release the files."""
        try:
            self._write()
        except HyCalError:
            pass  # these are embedded again
        finally:
            self._cache.close()

    def _write(self) -> None:
        with self._writing:
            rows = {key: row for key, row in self._waiting.items() if key not in self._forgotten}
            self._waiting, self._written = {}, time.monotonic()
            self._known -= self._forgotten
            if rows:
                self._cache.add(list(rows), np.stack(list(rows.values())))
