"""From labelled images to embedded domains."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hycal.data.bundled import EmbeddedDomain
from hycal.data.samples import ImageSet, Sample, Split
from hycal.embedding.pipeline import embed
from hycal.embedding.store import EmbeddingStore, Skipped, Tick
from hycal.encoders.encoder import Encoder
from hycal.validation import Floats

_SPLITS: tuple[Split, ...] = ("train", "test")


def embed_sets(
    sets: Mapping[str, ImageSet],
    encoder: Encoder,
    *,
    store: EmbeddingStore | None = None,
    watch: Callable[[Tick], None] | None = None,
) -> tuple[dict[str, EmbeddedDomain], tuple[Skipped, ...]]:
    """Return the training and test images of each set embedded, and the images that could not be used.

    Parameters
    ----------
    sets : mapping from domain name to ImageSet
    encoder, store, watch
        As for `hycal.embedding.embed`; all sets are one run.
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
    """Return every sample with the name of its set: the training images of a set, its test images, the next set."""
    return [(name, sample) for name, images in sets.items() for split in _SPLITS for sample in images.of(split)]
