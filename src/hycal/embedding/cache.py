"""The embedding cache of a user: an sqlite index over memory-mapped .npy shards.

The content hash of the image and the fingerprint of the encoder identify a row. A shard is written in one step, and
its index entries in one transaction after it; a killed process loses only the rows that it had not written. The name
of a shard is the hash of its bytes. `docs/reference/data.md` describes the files.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from sqlite3 import Connection, DatabaseError
from typing import Self

import numpy as np
import numpy.typing as npt

from hycal.embedding.index import (
    INDEX,
    add_shard,
    delete_shard,
    drop_damaged_entries,
    open_index,
    reading,
    transaction,
)
from hycal.embedding.store import JoinedStore, space_fingerprint
from hycal.encoders.encoder import CombinedEncoder, Encoder, present_parts
from hycal.encoders.files import cache_dir, file_hash
from hycal.errors import HyCalError
from hycal.storage.atomic import remove_draft, replacing, sync_folder
from hycal.storage.npz import load_array, load_arrays
from hycal.validation import Floats

_KEYS_AT_ONCE = 500


def embeddings_folder() -> Path:
    """Return the folder of the user's embedding cache."""
    return cache_dir() / "embeddings"


class EmbeddingCache:
    """The embeddings of one space, in a folder that several spaces and processes may share.

    Parameters
    ----------
    folder : path
        Made if missing.
    fingerprint : str
        The space, as `space_fingerprint` names it; rows of other spaces are invisible.
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
        self._shards = _shard_folder(self.folder, fingerprint)
        try:
            self._space = self._enter_space()
            with transaction(self._index, self.folder):
                self._shards.mkdir(parents=True, exist_ok=True)
                self._drop_damaged()
        except BaseException:
            self._index.close()
            raise

    @classmethod
    def of(cls, encoder: Encoder, folder: str | os.PathLike[str]) -> Self:
        """Open the cache in `folder` for the space of one encoder; `open_cache` also opens it for a combined one."""
        return cls(folder, fingerprint=space_fingerprint(encoder), dimension=encoder.dimension)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def incoming(self) -> Path:
        """The folder in which workers of a cluster leave finished shards."""
        return self.folder / "incoming" / self._shards.name

    def close(self) -> None:
        """Release the files."""
        self._index.close()

    def __len__(self) -> int:
        return len(self.known())

    def __contains__(self, key: bytes) -> bool:
        return bool(self._places([key]))

    def known(self) -> set[bytes]:
        """Return the content hashes of all images that have a row."""
        with reading(self.folder):
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
        """Write `rows` as one shard. A key that has a row keeps that row."""
        if rows.shape != (len(keys), self.dimension):
            raise HyCalError(
                f"Rows of shape {rows.shape} for {len(keys)} images; this cache holds rows of {self.dimension}. "
                "An encoder's dimension must match its fingerprint."
            )
        if not len(keys):
            return
        with transaction(self._index, self.folder):
            _write_shard(self._index, self._space, self._shards, keys, rows)

    def _places(self, keys: Sequence[bytes]) -> dict[bytes, tuple[int, int]]:
        places = {}
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            part = keys[start : start + _KEYS_AT_ONCE]
            marks = ",".join("?" * len(part))
            query = f"SELECT content, shard, position FROM images WHERE space = ? AND content IN ({marks})"
            with reading(self.folder):
                for content, shard, position in self._index.execute(query, (self._space, *part)):
                    places[content] = (shard, position)
        return places

    def _map(self, shard: int) -> Floats:
        with reading(self.folder):
            found = self._index.execute("SELECT sha256 FROM shards WHERE id = ?", (shard,)).fetchone()
        try:
            return load_array(self._shards / f"{found and found[0]}.npy", mmap_mode="r")
        except (OSError, ValueError) as error:
            raise HyCalError(
                f"A shard of the cache {self.folder} was damaged or removed during the run: {error}. Run it again; "
                "only its images are embedded anew."
            ) from None

    def _enter_space(self) -> int:
        with transaction(self._index, self.folder):
            row = self._index.execute(
                "SELECT id, dimension FROM spaces WHERE fingerprint = ?", (self.fingerprint,)
            ).fetchone()
            if row is None:
                added = "INSERT INTO spaces (fingerprint, dimension) VALUES (?, ?) RETURNING id, dimension"
                row = self._index.execute(added, (self.fingerprint, self.dimension)).fetchone()
            space, dimension = row
            if type(space) is not int:
                raise DatabaseError("a space has no number, so the index is damaged")
        if dimension != self.dimension:
            raise HyCalError(
                f"The cache {self.folder} holds {dimension}-dimensional rows for this encoder, which now gives "
                f"{self.dimension}. One fingerprint means one space: check the encoder, or use an empty folder."
            )
        return space

    def _drop_damaged(self) -> None:
        """Remove damaged entries, those of missing or changed shards, and the files without an entry.

        The images of a damaged shard are encoded again. A killed run leaves files without an entry.
        """
        drop_damaged_entries(self._index, self._space)
        expected = dict(self._index.execute("SELECT sha256, id FROM shards WHERE space = ?", (self._space,)).fetchall())
        sound = set()
        for path in self._shards.iterdir():
            if path.stem in expected and path.suffix == ".npy" and file_hash(path) == path.stem:
                sound.add(path.stem)
            else:
                _remove(path)
        for digest in expected.keys() - sound:
            delete_shard(self._index, expected[digest])


@contextlib.contextmanager
def open_cache(
    encoder: Encoder, folder: str | os.PathLike[str]
) -> Iterator[EmbeddingCache | JoinedStore[EmbeddingCache]]:
    """Open the cache in `folder` for an encoder; each part of a combined one has the rows that it has alone."""
    with contextlib.ExitStack() as opened:
        parts = [opened.enter_context(EmbeddingCache.of(part, folder)) for part in present_parts(encoder)]
        yield JoinedStore(encoder, parts) if isinstance(encoder, CombinedEncoder) else parts[0]


def forget_images(folder: Path, keys: Iterable[bytes]) -> int:
    """Remove the rows of these content hashes from all spaces of the cache in `folder`; return their number.

    A shard that loses rows is written anew without them. Then every file goes that the index does not name: the old
    shards, and what killed runs left. Rows without an entry, which two concurrent runs may leave, are removed too:
    their image is unknown. Where there is no cache, nothing is done. If it was interrupted, do it again. A run that
    reads a shard at the same time may have to be started again.
    """
    wanted = [(key,) for key in keys]
    if not (folder / INDEX).is_file():
        return _forget_files(folder, set(), wanted)
    index = open_index(folder / INDEX)
    try:
        index.execute("PRAGMA secure_delete = ON")
        with transaction(index, folder):
            for (space,) in index.execute("SELECT id FROM spaces").fetchall():
                drop_damaged_entries(index, space)
            before = index.total_changes
            index.executemany("DELETE FROM images WHERE content = ?", wanted)
            removed = index.total_changes - before
            _rewrite_shards(index, folder)
        with transaction(index, folder):  # nobody else writes a shard now
            named = index.execute("SELECT fingerprint, sha256 FROM shards JOIN spaces ON spaces.id = space").fetchall()
            kept = {_shard_folder(folder, fingerprint) / f"{digest}.npy" for fingerprint, digest in named}
            return removed + _forget_files(folder, kept, wanted)
    finally:
        index.close()


def _forget_files(folder: Path, kept: set[Path], wanted: Iterable[tuple[bytes]]) -> int:
    """Delete the shards that are not `kept`, unfinished ones, and those of workers that hold one of these images."""
    for path in folder.glob("shards/*/*"):
        if path not in kept and _OURS.fullmatch(path.name):
            _remove(path)
    removed = _forget_incoming(folder, {key for (key,) in wanted})
    for touched in (*folder.glob("shards/*"), *folder.glob("incoming/*")):
        sync_folder(touched)
    return removed


_OURS = re.compile(r"[0-9a-f]{64}\.npy|\..*\.part")


def _rewrite_shards(index: Connection, folder: Path) -> None:
    """Write every shard anew that has rows without an entry; the old files stay."""
    for shard, space, fingerprint, digest in index.execute(
        "SELECT shards.id, space, fingerprint, sha256 FROM shards JOIN spaces ON spaces.id = space "
        "WHERE n_rows > (SELECT count(*) FROM images WHERE shard = shards.id)"
    ).fetchall():
        path = _shard_folder(folder, fingerprint) / f"{digest}.npy"
        entries = index.execute("SELECT content, position FROM images WHERE shard = ?", (shard,)).fetchall()
        delete_shard(index, shard)
        if entries and path.is_file() and file_hash(path) == digest:
            rows = load_array(path)[[position for _, position in entries]]
            _write_shard(index, space, path.parent, [key for key, _ in entries], rows)


def _forget_incoming(folder: Path, keys: set[bytes]) -> int:
    """Delete the shards of workers that hold one of these images, or are damaged; return how many of them they hold."""
    removed = 0
    for draft in folder.glob("incoming/*/.*.part"):
        remove_draft(draft)
    for path in folder.glob("incoming/*/[!.]*.npz"):
        try:
            found = {key.tobytes() for key in load_arrays(path)["keys"]} & keys
        except (ValueError, KeyError):
            path.unlink(missing_ok=True)  # it may hold them
            continue
        if found:
            path.unlink(missing_ok=True)
            removed += len(found)
    return removed


def _write_shard(
    index: Connection, space: int, folder: Path, keys: Sequence[bytes], rows: npt.NDArray[np.float32]
) -> None:
    """Write `rows` as a shard in `folder`, then its index entries."""
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(rows, dtype=np.float32), allow_pickle=False)
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    with replacing(folder / f"{digest}.npy") as file:
        file.write(buffer.getvalue())
    add_shard(index, space, digest, keys)


def _shard_folder(folder: Path, fingerprint: str) -> Path:
    """Return the folder of the shards of a space, in the cache in `folder`."""
    return folder / "shards" / hashlib.sha256(fingerprint.encode()).hexdigest()[:16]


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
