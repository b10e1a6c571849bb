"""Embedding a data set on the user's machine into the form that the benchmark runs on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hycal.bench.embedded import BenchDomain
from hycal.data.catalog import find_dataset, prompts
from hycal.data.layouts import read_dataset
from hycal.data.samples import ImageSet, Split
from hycal.embedding.pipeline import Skipped, Tick, embed
from hycal.embedding.store import EmbeddingStore
from hycal.encoders.protocol import Encoder
from hycal.validation import Floats

Watch = Callable[[Tick], None]


def embed_domain(
    name: str, root: Path, encoder: Encoder, *, store: EmbeddingStore | None = None, watch: Watch | None = None
) -> tuple[BenchDomain, list[Skipped]]:
    """Return the embedded domain and the images that could not be used.

    Parameters
    ----------
    name : str
        A data set of `hycal data list`.
    root : path
        Its folder. The training split is drawn from, the test split tested on.
    encoder : Encoder
        With a text tower, the class names are embedded too, each in the data set's prompt.
    store, watch
        As for `hycal.embedding.embed`.
    """
    images = read_dataset(name, root)
    skipped: list[Skipped] = []
    train_x, train_y = _split(images, "train", encoder, store, watch, skipped)
    test_x, test_y = _split(images, "test", encoder, store, watch, skipped)
    words = prompts(find_dataset(name), images.class_names)
    text = encoder.encode_texts(words) if encoder.has_text else None
    return BenchDomain(name, train_x, train_y, test_x, test_y, images.class_names, text), skipped


def _split(
    images: ImageSet,
    split: Split,
    encoder: Encoder,
    store: EmbeddingStore | None,
    watch: Watch | None,
    skipped: list[Skipped],
) -> tuple[Floats, npt.NDArray[np.int64]]:
    samples = images.of(split)
    result = embed([sample.source for sample in samples], encoder, store=store, watch=watch)
    skipped += result.skipped
    return result.rows, np.array([samples[place].label for place in result.kept], dtype=np.int64)
