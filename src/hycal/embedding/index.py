"""The sqlite index of the embedding cache: for each space and image, the shard and the position of its row.

sqlite checks the structure of its file, not the values in it. So each shard has a seal, the SHA-256 of its entries: if
they do not fit it, the shard is dropped, and its images are embedded again.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hycal.errors import HyCalError

SCHEMA_VERSION = 2
INDEX = "index.sqlite"
_APPLICATION = 0x48794361  # "HyCa": distinguishes the index from other sqlite files
_SECONDS_TO_WAIT = 60  # for another process that is writing a shard
_DAMAGED = (sqlite3.Error, UnicodeError)  # the second where a damaged name stands in the message of the first

_SCHEMA = """
CREATE TABLE spaces (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL);
CREATE TABLE shards (id INTEGER PRIMARY KEY, space INTEGER NOT NULL REFERENCES spaces(id),
                     sha256 TEXT NOT NULL, n_rows INTEGER NOT NULL, seal TEXT NOT NULL DEFAULT '',
                     UNIQUE (space, sha256));
CREATE TABLE images (space INTEGER NOT NULL, content BLOB NOT NULL,
                     shard INTEGER NOT NULL REFERENCES shards(id), position INTEGER NOT NULL,
                     PRIMARY KEY (space, content)) WITHOUT ROWID;
CREATE INDEX images_of_shard ON images (shard);
"""
_SEAL_COLUMN = "ALTER TABLE shards ADD COLUMN seal TEXT NOT NULL DEFAULT ''"  # version 1 has none


@contextlib.contextmanager
def transaction(index: sqlite3.Connection, folder: Path) -> Iterator[None]:
    """Hold the write lock of the index during one transaction; roll back on an error."""
    try:
        index.execute("BEGIN IMMEDIATE")
        yield
        index.execute("COMMIT")
    except (*_DAMAGED, OSError) as error:
        raise HyCalError(
            f"The cache {folder} cannot be written: {error}. Rows written before are kept. Check that the disk has "
            "room, that the folder may be written, and that no other run holds it; then run it again."
        ) from None
    finally:
        if index.in_transaction:
            index.execute("ROLLBACK")


@contextlib.contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Say that the index of the cache in `folder` cannot be read."""
    try:
        yield
    except _DAMAGED as error:
        raise _unusable(folder / INDEX, error) from None


def open_index(path: Path) -> sqlite3.Connection:
    """Open the index at `path`, and create it if it is missing; refuse other sqlite files and other versions."""
    with contextlib.ExitStack() as failing:
        index = _connect(path)
        failing.callback(index.close)
        version, application = _prepare_index(path, index)
        if application != _APPLICATION or version != SCHEMA_VERSION:
            raise HyCalError(
                f"The index {path} has schema version {version}; this hycal reads {SCHEMA_VERSION}. "
                "Use an empty cache folder, or the hycal that made it."
            )
        failing.pop_all()
    return index


def _connect(path: Path) -> sqlite3.Connection:
    try:
        return sqlite3.connect(path, timeout=_SECONDS_TO_WAIT, isolation_level=None)
    except sqlite3.Error as error:
        raise _unusable(path, error) from None


def _unusable(path: Path, error: Exception | str) -> HyCalError:
    return HyCalError(
        f"The index {path} cannot be used: {error}. If no other run is using it, delete the cache folder; "
        "it is rebuilt from the images."
    )


def _prepare_index(path: Path, index: sqlite3.Connection) -> tuple[int, int]:
    """Create the tables of a new index; return the version and the application of the index."""
    try:
        index.execute("PRAGMA synchronous = FULL")
        index.execute("BEGIN IMMEDIATE")
        (version,) = index.execute("PRAGMA user_version").fetchone()
        (application,) = index.execute("PRAGMA application_id").fetchone()
        (tables,) = index.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables:
            for statement in _SCHEMA.split(";"):
                index.execute(statement)
            index.execute(f"PRAGMA application_id = {_APPLICATION}")
        elif (version, application) == (1, _APPLICATION):
            index.execute(_SEAL_COLUMN)
            for (shard,) in index.execute("SELECT id FROM shards").fetchall():
                seal_shard(index, shard)
        if not tables or (version, application) == (1, _APPLICATION):
            index.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            version, application = SCHEMA_VERSION, _APPLICATION
        index.execute("COMMIT")
        (problem,) = index.execute("PRAGMA integrity_check(1)").fetchone()
    except _DAMAGED as error:
        raise _unusable(path, error) from None
    if problem != "ok":
        raise _unusable(path, problem)
    return version, application


def add_shard(index: sqlite3.Connection, space: int, digest: str, keys: Sequence[bytes]) -> None:
    """Add the shard with this hash, if it is new, and its images; an image that has a row keeps that row."""
    (shard,) = index.execute(
        "INSERT INTO shards (space, sha256, n_rows) VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET n_rows = n_rows RETURNING id",
        (space, digest, len(keys)),
    ).fetchone()
    index.executemany(
        "INSERT OR IGNORE INTO images (space, content, shard, position) VALUES (?, ?, ?, ?)",
        [(space, key, shard, position) for position, key in enumerate(keys)],
    )
    seal_shard(index, shard)


def seal_shard(index: sqlite3.Connection, shard: int) -> None:
    """Keep the SHA-256 of a shard's entries."""
    head = index.execute("SELECT space, sha256, n_rows FROM shards WHERE id = ?", (shard,)).fetchone()
    query = "SELECT content, position FROM images WHERE shard = ? AND space = ? ORDER BY content"
    entries = index.execute(query, (shard, head[0]))
    index.execute("UPDATE shards SET seal = ? WHERE id = ?", (_seal(head, entries), shard))


def _seal(head: tuple[object, ...], entries: Iterable[tuple[object, object]]) -> str:
    return hashlib.sha256(repr([tuple(head), *entries]).encode()).hexdigest()


def drop_damaged_entries(index: sqlite3.Connection, space: int) -> None:
    """Delete the shards of a space whose entries do not fit their seal, and the entries that belong to no shard."""
    entries: dict[int, list[tuple[object, object]]] = defaultdict(list)
    query = "SELECT shard, content, position FROM images WHERE space = ? ORDER BY content"
    for shard, content, position in index.execute(query, (space,)):
        entries[shard].append((content, position))
    shards = {
        row[0]: row[1:]
        for row in index.execute("SELECT id, space, sha256, n_rows, seal FROM shards WHERE space = ?", (space,))
    }
    for shard in entries.keys() | shards.keys():
        *head, seal = shards.get(shard, [None])
        if seal != _seal(tuple(head), entries[shard]):
            delete_shard(index, shard)


def delete_shard(index: sqlite3.Connection, shard: int) -> None:
    """Delete a shard and the entries of its images."""
    index.execute("DELETE FROM images WHERE shard = ?", (shard,))
    index.execute("DELETE FROM shards WHERE id = ?", (shard,))
