"""Embeddings that were computed once: an sqlite index over memory-mapped .npy shards.

A row is found by (content hash of the image, fingerprint of the encoder). A shard appears whole or not at
all, and its index entries in one transaction after it; a process killed at any moment loses only the rows of
the shard it had not written. `docs/data.md` describes the files.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from hycal.embedding.index import INDEX, enter_shard, open_index, writing
from hycal.embedding.store import space_of
from hycal.encoders.protocol import Encoder
from hycal.errors import HyCalError
from hycal.storage.atomic import replacing
from hycal.validation import Floats

_KEYS_AT_ONCE = 500


class EmbeddingCache:
    """The embeddings of one encoder's space, in a folder that many spaces and processes may share.

    Parameters
    ----------
    folder : path
        Made if missing.
    fingerprint : str
        The encoder's; rows of another fingerprint are never seen.
    dimension : int
        Width of the rows.

    Examples
    --------
    >>> import tempfile
    >>> rows = np.eye(2, 4, dtype=np.float32)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with EmbeddingCache(folder, fingerprint="f1", dimension=4) as cache:
    ...         cache.add([b"a" * 32, b"b" * 32], rows)
    ...         b"a" * 32 in cache, b"c" * 32 in cache, cache.get([b"b" * 32]).tolist()
    (True, False, [[0.0, 1.0, 0.0, 0.0]])
    """

    def __init__(self, folder: str | os.PathLike[str], *, fingerprint: str, dimension: int) -> None:
        self.folder = Path(folder)
        self.fingerprint = fingerprint
        self.dimension = dimension
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HyCalError(f"Cannot use {self.folder} as a cache: {error}. Choose another folder.") from None
        self._index = open_index(self.folder / INDEX)
        self._shards = shard_folder(self.folder, fingerprint)
        try:
            self._space = self._enter_space()
            with writing(self._index, self.folder):
                self._shards.mkdir(parents=True, exist_ok=True)
                self._drop_damaged()
        except BaseException:
            self._index.close()
            raise

    @classmethod
    def of(cls, encoder: Encoder, folder: str | os.PathLike[str]) -> Self:
        """Open the part of the cache in `folder` that belongs to `encoder`."""
        return cls(folder, fingerprint=space_of(encoder), dimension=encoder.dimension)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def incoming(self) -> Path:
        """The folder for finished shards of other processes, until they are taken in."""
        return self.folder / "incoming" / self._shards.name

    def close(self) -> None:
        """Release the files."""
        self._index.close()

    def __len__(self) -> int:
        (count,) = self._index.execute("SELECT count(*) FROM images WHERE space = ?", (self._space,)).fetchone()
        return int(count)

    def __contains__(self, key: bytes) -> bool:
        return bool(self._places([key]))

    def known(self) -> set[bytes]:
        """Return the content hashes of all images that have a row."""
        found = self._index.execute("SELECT content FROM images WHERE space = ?", (self._space,))
        return {content for (content,) in found}

    def get(self, keys: Sequence[bytes]) -> Floats:
        """Return the rows of `keys`, in their order; a key without a row is an error."""
        places = self._places(keys)
        wanted: dict[int, tuple[list[int], list[int]]] = {}
        for number, key in enumerate(keys):
            if key not in places:
                raise HyCalError(f"The cache {self.folder} has no row for image {key.hex()[:12]}. Embed it first.")
            shard, position = places[key]
            numbers, positions = wanted.setdefault(shard, ([], []))
            numbers.append(number)
            positions.append(position)
        rows = np.empty((len(keys), self.dimension), dtype=np.float32)
        for shard, (numbers, positions) in wanted.items():  # one map at a time: each holds a file open
            rows[numbers] = self._map(shard)[positions]
        return rows

    def add(self, keys: Sequence[bytes], rows: npt.NDArray[np.float32]) -> None:
        """Keep `rows` as one shard; keys that already have a row keep the one they have."""
        if rows.shape != (len(keys), self.dimension):
            raise HyCalError(
                f"Rows of shape {rows.shape} for {len(keys)} images; this cache holds rows of {self.dimension}. "
                "An encoder's dimension must match its fingerprint."
            )
        if not len(keys):
            return
        content, digest = npy_bytes(rows)
        with writing(self._index, self.folder):
            with replacing(self._shards / f"{digest}.npy") as file:
                file.write(content)
            shard = enter_shard(self._index, self._space, digest, len(keys))
            self._index.executemany(
                "INSERT OR IGNORE INTO images (space, content, shard, position) VALUES (?, ?, ?, ?)",
                [(self._space, key, shard, position) for position, key in enumerate(keys)],
            )

    def _places(self, keys: Sequence[bytes]) -> dict[bytes, tuple[int, int]]:
        places = {}
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            part = keys[start : start + _KEYS_AT_ONCE]
            marks = ",".join("?" * len(part))
            query = f"SELECT content, shard, position FROM images WHERE space = ? AND content IN ({marks})"
            for content, shard, position in self._index.execute(query, (self._space, *part)):
                places[content] = (shard, position)
        return places

    def _map(self, shard: int) -> Floats:
        found = self._index.execute("SELECT sha256 FROM shards WHERE id = ?", (shard,)).fetchone()
        try:
            rows: Floats = np.load(self._shards / f"{found and found[0]}.npy", mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise HyCalError(
                f"A shard of the cache {self.folder} was damaged or removed during the run: {error}. Run it again; "
                "only its images are embedded anew."
            ) from None
        return rows

    def _enter_space(self) -> int:
        with writing(self._index, self.folder):
            row = self._index.execute(
                "SELECT id, dimension FROM spaces WHERE fingerprint = ?", (self.fingerprint,)
            ).fetchone()
            if row is None:
                added = "INSERT INTO spaces (fingerprint, dimension) VALUES (?, ?) RETURNING id, dimension"
                row = self._index.execute(added, (self.fingerprint, self.dimension)).fetchone()
        space, dimension = row
        if dimension != self.dimension:
            raise HyCalError(
                f"The cache {self.folder} holds {dimension}-dimensional rows for this encoder, which now gives "
                f"{self.dimension}. One fingerprint means one space: check the encoder, or use an empty folder."
            )
        return int(space)

    def _drop_damaged(self) -> None:
        """Forget shards that are gone or whose bytes changed, and delete files that no entry names.

        The images of a damaged shard are simply encoded again. Files without an entry are what a killed run left.
        """
        expected = dict(self._index.execute("SELECT sha256, id FROM shards WHERE space = ?", (self._space,)).fetchall())
        sound = set()
        for path in self._shards.iterdir():
            if path.stem in expected and path.suffix == ".npy" and _sha256(path) == path.stem:
                sound.add(path.stem)
            else:
                _remove(path)
        self._forget(expected[digest] for digest in expected.keys() - sound)

    def _forget(self, shards: Iterable[int]) -> None:
        for shard in shards:
            self._index.execute("DELETE FROM images WHERE shard = ?", (shard,))
            self._index.execute("DELETE FROM shards WHERE id = ?", (shard,))


def shard_folder(folder: Path, fingerprint: str) -> Path:
    """Return where the cache in `folder` keeps the shards of a space."""
    return folder / "shards" / hashlib.sha256(fingerprint.encode()).hexdigest()[:16]


def npy_bytes(rows: npt.NDArray[np.float32]) -> tuple[bytes, str]:
    """Return rows as the content of a shard, and its hash."""
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(rows, dtype=np.float32), allow_pickle=False)
    content = buffer.getvalue()
    return content, hashlib.sha256(content).hexdigest()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
