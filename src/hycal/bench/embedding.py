"""From the user's copy of a data set to the embedded domain that the benchmark runs on."""

from __future__ import annotations

import base64
import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hycal.bench.domains import BenchDomain, read_domain
from hycal.data.catalog import DataSetSpec, find_dataset, prompts
from hycal.data.embedded import embed_sets
from hycal.data.layouts import dataset_folder, read_dataset, unlike_paper
from hycal.data.samples import ImageSet
from hycal.embedding.decoding import decode, thumbnail
from hycal.embedding.sources import ImageError
from hycal.embedding.store import EmbeddingStore, Skipped, Tick, space_fingerprint
from hycal.encoders.encoder import Encoder
from hycal.errors import HyCalError

_EXAMPLES = 5  # thumbnails of a domain


def find_copy(name: str, root: Path) -> Path:
    """Return the folder of a data set in `root`, by its name or an alias; refuse a copy that is not the paper's."""
    spec = find_dataset(name)
    folder = dataset_folder(spec, root)
    _check_copy(spec, folder)
    return folder


def _check_copy(spec: DataSetSpec, root: Path) -> None:
    """Refuse a copy that has another split, or other images, than the paper's."""
    if lacking := unlike_paper(spec, root):
        raise HyCalError(f"{lacking}. Without it the embeddings would not be those of the paper's settings.")


def embed_domain(
    name: str,
    root: Path,
    encoder: Encoder,
    *,
    store: EmbeddingStore | None = None,
    watch: Callable[[Tick], None] | None = None,
) -> tuple[BenchDomain, tuple[Skipped, ...]]:
    """Embed the user's copy of a data set in `root`; return the domain and the images that could not be used.

    The training split is drawn from, the test split tested on. A copy that lacks CoOp's split or another file of the
    paper is refused. If the encoder has a text tower, the class names are embedded too, each in the data set's prompt.
    The options are those of `hycal.embedding.embed`.
    """
    spec = find_dataset(name)
    images = read_dataset(name, root)
    _check_copy(spec, root)
    domains, skipped = embed_sets({name: images}, encoder, store=store, watch=watch)
    words = prompts(spec, images.class_names)
    text = encoder.encode_texts(words) if encoder.has_text else None
    known: dict[str, Any] = {
        "text": text,
        "space": space_fingerprint(encoder),
        "examples": _examples(images),
        "images": _list_hash(images, root),
    }
    domain = BenchDomain(**{**vars(domains[name]), **known})
    return domain, skipped


def _examples(images: ImageSet) -> tuple[str, ...]:
    """Return thumbnails of training images: the first one of some classes, which lie evenly among all."""
    first = {sample.label: sample for sample in reversed(images.of("train"))}
    labels, count = sorted(first), min(_EXAMPLES, len(first))
    found = []
    for label in (labels[len(labels) * place // count] for place in range(count)):
        with contextlib.suppress(ImageError):  # the embedding reports it
            found.append(base64.b64encode(thumbnail(decode(first[label].source.read()))).decode())
    return tuple(found)


def _list_hash(images: ImageSet, root: Path) -> str:
    """Return a hash of the classes, and of the name below `root`, class and split of every image to learn or test."""
    total = hashlib.sha256(repr(images.class_names).encode())
    for sample in images.of("train", "test"):
        name = sample.source.name.removeprefix(str(root)).replace("\\", "/")
        total.update(repr((name, sample.label, sample.split)).encode())
    return total.hexdigest()


def is_embedded(name: str, folder: Path, encoder: Encoder, root: Path) -> bool:
    """Return whether FOLDER/NAME.npz holds what this encoder would make of the copy of the data set in `root`.

    A file of another encoder, of an unknown one or of other images is an error. Without a copy, no images are compared.
    """
    path = folder / f"{name}.npz"
    if not path.exists():
        return False
    domain, expected = read_domain(folder, name), space_fingerprint(encoder)
    if domain.space != expected:
        raise HyCalError(
            f"{path} holds embeddings of {domain.space or 'an unknown encoder'}; expected {encoder.name} ({expected}). "
            "Use another folder for this encoder, or delete the file to embed the data set again."
        )
    try:
        copy = dataset_folder(find_dataset(name), root)
    except HyCalError:  # removed, once it was embedded
        return True
    _check_copy(find_dataset(name), copy)
    if domain.images != _list_hash(read_dataset(name, copy), copy):
        what = "other images, classes or splits than those" if domain.images else "images that it does not list"
        raise HyCalError(
            f"{path} holds embeddings of {what}; expected the images of {copy} as they are now. Delete the file to "
            "embed the data set again, or use another folder."
        )
    return True
