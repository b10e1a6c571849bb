"""Many images on the workers of a cluster: first all content hashes, then one task for each shard of images.

The hash of an image decides its shard, so copies of an image are in one shard and are encoded once. This needs a second
reading of each file, in the worker; each image is decoded once. A worker writes its shard as one file in the folder of
the cache, which all workers share; only the caller adds finished shards to the index. A lost shard is written again,
with the same bytes. The next run adds a finished shard that was not added.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from hycal.embedding.cache import EmbeddingCache
from hycal.embedding.decoding import MOST_PIXELS, TOO_LARGE
from hycal.embedding.pipeline import BATCH, embed
from hycal.embedding.sources import ImageError, ImageFile, ImageSource, content_hash
from hycal.embedding.store import Embedded, JoinedStore, Outcomes, Tick, space_fingerprint
from hycal.encoders import load_encoder
from hycal.encoders.catalog import Backend
from hycal.encoders.encoder import Encoder, present_parts
from hycal.errors import HyCalError
from hycal.parallel.cluster import run_each
from hycal.storage.atomic import replacing
from hycal.storage.npz import load_arrays

_IMAGES_PER_SHARD = 1024
_KEY = 32  # bytes of a content hash
_CHANGED = "changed while it was being embedded; run it again"


def embed_sharded(
    sources: Sequence[ImageSource],
    load: Callable[[], Encoder],
    *,
    store: EmbeddingCache | JoinedStore[EmbeddingCache],
    cluster: str,
    batch: int = BATCH,
    most_pixels: int = MOST_PIXELS,
    images_per_shard: int = _IMAGES_PER_SHARD,
    watch: Callable[[Tick], None] | None = None,
) -> Embedded:
    """Embed `sources` on `cluster`; the result is that of `embed`, to the byte. Parts of an encoder come in turn.

    Parameters
    ----------
    sources : sequence of ImageSource
        Files have the same path on every worker.
    load : callable
        Returns the encoder in each worker; picklable, such as a partial of `encoder_of_worker`.
    store : EmbeddingCache or JoinedStore
        In a folder that every worker can write, under the same path.
    cluster : str
        See `hycal.parallel.cluster`.
    batch, most_pixels, watch
        As for `embed`.
    images_per_shard : int
        The most work that a lost worker can lose.

    Examples
    --------
    >>> import tempfile
    >>> from functools import partial
    >>> from hycal.encoders import load_encoder
    >>> load = partial(load_encoder, "builtin")
    >>> space = space_fingerprint(load())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with EmbeddingCache(folder, fingerprint=space, dimension=512) as cache:
    ...         embed_sharded([], load, store=cache, cluster="local:1").rows.shape
    (0, 512)
    """

    def embed_part(load: Callable[[], Encoder], store: EmbeddingCache) -> Embedded:
        """Embed the sources with one encoder."""
        folder = store.incoming.absolute()
        for left in sorted(folder.glob("[!.]*.npz")):
            _take_in(left, store)
        outcomes = _hashed(sources, cluster, images_per_shard)
        shards = _shards(sources, outcomes.keys, store.known(), folder, images_per_shard)
        work = partial(_write_shard, load=load, space=store.fingerprint, batch=batch, most_pixels=most_pixels)
        remaining, encoded = sum(len(shard.sources) for shard in shards), 0
        for number, problems in run_each(work, shards, cluster=cluster):
            _take_in(shards[number].path, store)
            outcomes.unusable.update(problems)
            size = len(shards[number].sources)
            remaining, encoded = remaining - size, encoded + size - len(problems)
            if watch is not None:
                watch(Tick(len(sources) - remaining, len(sources), encoded, outcomes.n_skipped))
        return outcomes.embedded(sources, store, encoded)

    if not isinstance(store, JoinedStore):
        return embed_part(load, store)
    parts = [embed_part(partial(_part_of, load, number), own) for number, own in enumerate(store.parts)]
    return _side_by_side(parts, store)


@cache
def encoder_of_worker(
    name: str, weights: Path | None, backend: Backend | None = "onnx", like: str | None = None
) -> Encoder:
    """Return the encoder, loaded once in each process, with one thread: each core has a worker of its own."""
    return load_encoder(name, weights=weights, backend=backend, threads=1, like=like)


def _part_of(load: Callable[[], Encoder], number: int) -> Encoder:
    return present_parts(load())[number]


def _side_by_side(parts: Sequence[Embedded], store: JoinedStore[EmbeddingCache]) -> Embedded:
    """Return the rows of the images that every part has embedded."""
    key_of = dict(zip(parts[0].kept.tolist(), parts[0].keys, strict=True))
    kept = sorted(set.intersection(*(set(part.kept.tolist()) for part in parts)))
    keys = tuple(key_of[number] for number in kept)
    skipped = tuple({skip.name: skip for part in reversed(parts) for skip in part.skipped}.values())
    encoded = max(part.encoded for part in parts)
    return Embedded(store.get(keys), np.array(kept, dtype=np.intp), skipped, encoded, keys)


@dataclass(frozen=True, eq=False)
class _Shard:
    """The images of one task, in the order of their hashes, and the file for their embeddings."""

    path: Path
    sources: Sequence[ImageSource]
    keys: Sequence[bytes]


def _hashed(sources: Sequence[ImageSource], cluster: str, size: int) -> Outcomes:
    """Read every source, and return its hash or the reason why it cannot be read."""
    pieces = [[_anywhere(source) for source in sources[at : at + size]] for at in range(0, len(sources), size)]
    found = dict(run_each(_hashes, pieces, cluster=cluster))
    outcomes = Outcomes()
    for number in range(len(pieces)):
        for key in found[number]:
            if isinstance(key, str):
                outcomes.problems[len(outcomes.keys)] = key
            outcomes.keys.append(b"" if isinstance(key, str) else key)
    return outcomes


def _anywhere(source: ImageSource) -> ImageSource:
    """Return the source with an absolute path: the working folders of the processes differ."""
    return ImageFile(source.path.absolute()) if isinstance(source, ImageFile) else source


def _hashes(sources: Sequence[ImageSource]) -> list[bytes | str]:
    return [_hash(source) for source in sources]


def _hash(source: ImageSource) -> bytes | str:
    try:
        return content_hash(source.read())
    except ImageError as problem:
        return str(problem)
    except MemoryError:
        return TOO_LARGE


def _shards(
    sources: Sequence[ImageSource], keys: Sequence[bytes], known: set[bytes], folder: Path, size: int
) -> list[_Shard]:
    first = {key: number for number, key in reversed(list(enumerate(keys))) if key and key not in known}
    count = -(-len(first) // size)
    members: list[list[bytes]] = [[] for _ in range(count)]
    for key in sorted(first):
        members[int.from_bytes(key[:8]) % count].append(key)
    return [
        _Shard(
            folder / f"{hashlib.sha256(b''.join(part)).hexdigest()}.npz",
            [_anywhere(sources[first[key]]) for key in part],
            part,
        )
        for part in members
        if part
    ]


def _write_shard(
    shard: _Shard, *, load: Callable[[], Encoder], space: str, batch: int, most_pixels: int
) -> Mapping[bytes, str]:
    """Embed the images of `shard` into its file; return the reason for each image without an embedding, by hash."""
    encoder = load()
    here = space_fingerprint(encoder)
    if here != space:
        raise HyCalError(
            f"A worker's encoder {encoder.name!r} gives {here!r}, but this run is about {space!r}. "
            "Rows of two encoders cannot be compared: put the same weights and the same hycal on every worker."
        )
    result = embed(shard.sources, encoder, batch=batch, threads=1, most_pixels=most_pixels)
    row_of = {number: row for row, number in enumerate(result.kept.tolist())}
    reasons = iter(result.skipped)
    problems, rows = {}, []
    for number, key in enumerate(shard.keys):
        row = row_of.get(number)
        if row is None:
            problems[key] = next(reasons).reason
        elif result.keys[row] != key:
            problems[key] = _CHANGED
        else:
            rows.append(row)
    keys = b"".join(key for key in shard.keys if key not in problems)
    shard.path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(shard.path) as file:
        np.savez(file, keys=np.frombuffer(keys, np.uint8).reshape(-1, _KEY), rows=result.rows[rows])
    return problems


def _take_in(path: Path, store: EmbeddingCache) -> None:
    """Move the rows of a finished shard into the cache. Delete a damaged file: its images are embedded again."""
    try:
        arrays = load_arrays(path)
        keys, rows = arrays["keys"], arrays["rows"]
    except (ValueError, KeyError):
        path.unlink(missing_ok=True)  # missing where another run on the same cache added it
        return
    store.add([key.tobytes() for key in keys], rows)
    path.unlink(missing_ok=True)
