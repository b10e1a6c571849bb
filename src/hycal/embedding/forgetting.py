"""Forget images in the embedding cache: their rows leave the shards, whichever encoder made them.

A shard is named by the hash of its bytes, so one that loses rows is written anew without them, and the old file is
deleted once the index names the new one. Rows that no entry names, which two runs at once may leave, go as well: whose
they are cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from sqlite3 import Connection

import numpy as np

from hycal.embedding.cache import npy_bytes, shard_folder
from hycal.embedding.index import INDEX, enter_shard, open_index, writing
from hycal.storage.atomic import replacing
from hycal.storage.npz import load_arrays


def forget_images(folder: Path, keys: Iterable[bytes]) -> int:
    """Remove every row of the images of these content hashes from the cache in `folder`; return how many there were.

    Where there is no cache, nothing is done. A run that reads a shard meanwhile may have to be started again.
    """
    wanted = [(key,) for key in keys]
    if not wanted or not (folder / INDEX).is_file():
        return 0
    index = open_index(folder / INDEX)
    try:
        index.execute("PRAGMA secure_delete = ON")
        with writing(index, folder):
            before = index.total_changes
            index.executemany("DELETE FROM images WHERE content = ?", wanted)
            removed = index.total_changes - before
            old = _rewritten(index, folder)
        for path in old:
            path.unlink(missing_ok=True)
    finally:
        index.close()
    return removed + _dropped_incoming(folder, {key for (key,) in wanted})


def _rewritten(index: Connection, folder: Path) -> list[Path]:
    """Write every shard anew that has rows without an entry; return the old files."""
    old, new_paths = [], set()
    for shard, space, fingerprint, digest in index.execute(
        "SELECT shards.id, space, fingerprint, sha256 FROM shards JOIN spaces ON spaces.id = space "
        "WHERE n_rows > (SELECT count(*) FROM images WHERE shard = shards.id)"
    ).fetchall():
        path = shard_folder(folder, fingerprint) / f"{digest}.npy"
        entries = index.execute("SELECT content, position FROM images WHERE shard = ?", (shard,)).fetchall()
        index.execute("DELETE FROM images WHERE shard = ?", (shard,))
        index.execute("DELETE FROM shards WHERE id = ?", (shard,))
        old.append(path)
        if not entries or not path.is_file():
            continue
        content, digest = npy_bytes(np.load(path, allow_pickle=False)[[position for _, position in entries]])
        new_paths.add(path.with_name(f"{digest}.npy"))
        with replacing(path.with_name(f"{digest}.npy")) as file:
            file.write(content)
        new = enter_shard(index, space, digest, len(entries))
        index.executemany(
            "INSERT INTO images (space, content, shard, position) VALUES (?, ?, ?, ?)",
            [(space, key, new, position) for position, (key, _) in enumerate(entries)],
        )
    return [path for path in old if path not in new_paths]


def _dropped_incoming(folder: Path, keys: set[bytes]) -> int:
    """Delete what workers of a cluster left for the next run, where it holds one of these images."""
    removed = 0
    for path in folder.glob("incoming/*/*.npz"):
        try:
            found = {key.tobytes() for key in load_arrays(path)["keys"]} & keys
        except (ValueError, KeyError):
            continue  # damaged: the next run removes it
        if found:
            path.unlink(missing_ok=True)
            removed += len(found)
    return removed
