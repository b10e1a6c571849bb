"""Embedding a data set on the user's machine into the form that the benchmark runs on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hycal.bench.domains import BenchDomain, read_domain
from hycal.data.catalog import find_dataset, prompts
from hycal.data.embedded import embed_sets
from hycal.data.layouts import read_dataset
from hycal.embedding.store import EmbeddingStore, Skipped, Tick, space_of
from hycal.encoders.encoder import Encoder
from hycal.errors import HyCalError


def embed_domain(
    name: str,
    root: Path,
    encoder: Encoder,
    *,
    store: EmbeddingStore | None = None,
    watch: Callable[[Tick], None] | None = None,
) -> tuple[BenchDomain, tuple[Skipped, ...]]:
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
    domains, skipped = embed_sets({name: images}, encoder, store=store, watch=watch)
    words = prompts(find_dataset(name), images.class_names)
    text = encoder.encode_texts(words) if encoder.has_text else None
    return BenchDomain(**vars(domains[name]), text=text, space=space_of(encoder)), skipped


def is_embedded(name: str, folder: Path, encoder: Encoder) -> bool:
    """Return whether FOLDER/NAME.npz holds embeddings of this encoder; an error if it holds others."""
    path = folder / f"{name}.npz"
    if not path.exists():
        return False
    space, expected = read_domain(folder, name).space, space_of(encoder)
    if space != expected:
        raise HyCalError(
            f"{path} holds embeddings of {space or 'an unknown encoder'}; expected {encoder.name} ({expected}). "
            "Use another folder for this encoder, or delete the file to embed the data set again."
        )
    return True
