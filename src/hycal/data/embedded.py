"""Embeddings of labelled images: a table of them, and domains with training and test embeddings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hycal.data.samples import ImageSet, ListedImage, Sample, Split
from hycal.embedding.pipeline import embed
from hycal.embedding.store import Embedded, EmbeddingStore, Skipped, Tick, space_fingerprint
from hycal.embedding.table import EmbeddingTable
from hycal.encoders.encoder import Encoder
from hycal.validation import Floats

_SPLITS: tuple[Split, ...] = ("train", "test")


@dataclass(frozen=True, eq=False)
class EmbeddedDomain:
    """The training and test embeddings of one domain.

    Attributes
    ----------
    name : str
    train_x, test_x : ndarray of shape (n, d)
        Unit float32 rows.
    train_y, test_y : ndarray of shape (n,)
        Positions in `class_names`.
    class_names : tuple of str

    Examples
    --------
    >>> from hycal.data import load_xd8
    >>> texture = load_xd8()["texture"]
    >>> texture.test_x.shape, len(texture.class_names)
    ((360, 512), 10)
    """

    name: str
    train_x: Floats
    train_y: npt.NDArray[np.int64]
    test_x: Floats
    test_y: npt.NDArray[np.int64]
    class_names: tuple[str, ...]


def embed_sets(
    sets: Mapping[str, ImageSet],
    encoder: Encoder,
    *,
    store: EmbeddingStore | None = None,
    watch: Callable[[Tick], None] | None = None,
) -> tuple[dict[str, EmbeddedDomain], tuple[Skipped, ...]]:
    """Return the embeddings of the training and test images of each set, and the skipped images.

    Parameters
    ----------
    sets : mapping from domain name to ImageSet
    encoder, store, watch
        As for `hycal.embedding.embed`; one run embeds all sets.
    """
    samples = in_order(sets)
    result = embed([sample.source for _, sample in samples], encoder, store=store, watch=watch)
    kept = [samples[position] for position in result.kept]

    def part(name: str, split: Split) -> tuple[Floats, npt.NDArray[np.int64]]:
        rows = [row for row, (domain, sample) in enumerate(kept) if (domain, sample.split) == (name, split)]
        return result.rows[rows], np.array([kept[row][1].label for row in rows], dtype=np.int64)

    domains = {
        name: EmbeddedDomain(name, *part(name, "train"), *part(name, "test"), images.class_names)
        for name, images in sets.items()
    }
    return domains, result.skipped


def images_digest(sets: Mapping[str, ImageSet], root: Path) -> str:
    """Return the hash of the lines `<sha256 of file>  <path below root>` of all files, train then test of each set."""
    listing = hashlib.sha256()
    for _, sample in in_order(sets):
        path = Path(sample.source.name)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        listing.update(f"{digest}  {path.relative_to(root).as_posix()}\n".encode())
    return listing.hexdigest()


def in_order(sets: Mapping[str, ImageSet]) -> list[tuple[str, Sample]]:
    """Return every sample with the name of its set: the training and the test images of a set, then the next set."""
    return [(name, sample) for name, images in sets.items() for split in _SPLITS for sample in images.of(split)]


def embedding_table(images: Sequence[ListedImage], result: Embedded, encoder: Encoder) -> EmbeddingTable:
    """Return the table of embedded images: `result` is what `embed` returned for their sources."""
    kept = [images[position] for position in result.kept]
    return EmbeddingTable(
        rows=result.rows,
        files=np.array([image.file for image in kept], dtype=np.str_),
        labels=np.array([image.label for image in kept], dtype=np.str_),
        domains=np.array([image.domain for image in kept], dtype=np.str_),
        splits=np.array([image.split for image in kept], dtype=np.str_),
        encoder=encoder.name,
        fingerprint=space_fingerprint(encoder),
    )
