"""Embeddings of labelled images: a table of them, and domains with training and test embeddings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.data.samples import ImageSet, ListedImage, Sample, Split
from hycal.embedding.pipeline import embed
from hycal.embedding.store import Embedded, EmbeddingStore, Skipped, Tick, space_fingerprint
from hycal.embedding.table import EmbeddingTable
from hycal.encoders.encoder import Encoder
from hycal.errors import HyCalError
from hycal.validation import Floats, unit_rows

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
    text : ndarray of shape (classes, d), or None
        The text embedding of each class.
    space : str
        Name of the embedding space, as `hycal.embedding.store.space_fingerprint` gives it; "" if it is not known.
    examples : tuple of str
        Thumbnails of some training images, as JPEG files in base64.
    images : str
        A hash of the list of images, with their classes and splits, that was embedded; "" if it is not known.

    Examples
    --------
    >>> from hycal import NCM
    >>> from hycal.datasets import load_xd8
    >>> texture = load_xd8()["texture"]
    >>> round(NCM().fit(*texture.train).score(*texture.test), 2)
    0.87
    """

    name: str
    train_x: Floats
    train_y: npt.NDArray[np.int64]
    test_x: Floats
    test_y: npt.NDArray[np.int64]
    class_names: tuple[str, ...]
    text: Floats | None = None
    space: str = ""
    examples: tuple[str, ...] = ()
    images: str = ""

    @property
    def train(self) -> tuple[Floats, npt.NDArray[np.str_]]:
        """Training embeddings and the names of their classes: what `fit` takes."""
        return self.train_x, np.array(self.class_names)[self.train_y]

    @property
    def test(self) -> tuple[Floats, npt.NDArray[np.str_]]:
        """Test embeddings and the names of their classes: what `score` takes."""
        return self.test_x, np.array(self.class_names)[self.test_y]


def embed_sets(
    sets: Mapping[str, ImageSet],
    encoder: Encoder,
    *,
    store: EmbeddingStore | None = None,
    watch: Callable[[Tick], None] | None = None,
) -> tuple[dict[str, EmbeddedDomain], tuple[Skipped, ...]]:
    """Return the embeddings of the training and test images of each set, and the skipped images.

    The options are those of `hycal.embedding.embed`; one run embeds all sets.
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


def domain_of(name: str, arrays: Mapping[str, Any], where: object) -> EmbeddedDomain:
    """Return the domain of named arrays: train_x, train_y, test_x, test_y, class_names, and what else is known.

    Arrays of another form are refused; `where` says in the message where they are from.
    """
    check_arrays(arrays, where)
    text = arrays.get("text")
    domain = EmbeddedDomain(
        name=name,
        train_x=unit_rows(arrays["train_x"]),
        train_y=arrays["train_y"].astype(np.int64),
        test_x=unit_rows(arrays["test_x"]),
        test_y=arrays["test_y"].astype(np.int64),
        class_names=tuple(str(label) for label in arrays["class_names"]),
        text=None if text is None else unit_rows(text),
        space=str(arrays.get("space", "")),
        examples=tuple(arrays.get("examples", np.array([], dtype=np.str_)).tolist()),
        images=str(arrays.get("images", "")),
    )
    check_domain(domain, where)
    return domain


@dataclass(frozen=True)
class _Form:
    """Expected form of an array: a description, the number of axes, the kinds of its values."""

    words: str
    ndim: int
    kinds: str
    optional: bool = False

    def check(self, array: npt.NDArray[Any] | None, where: str) -> None:
        if array is None and self.optional:
            return
        found = "missing" if array is None else f"of shape {array.shape} and type {array.dtype}"
        if array is None or array.ndim != self.ndim or array.dtype.kind not in self.kinds or not array.size:
            raise HyCalError(f"{where} is {found}; expected {self.words}. Make the file again.")
        if self.ndim == 2 and not (usable := np.isfinite(array).all(axis=1) & array.any(axis=1)).all():
            raise HyCalError(f"{where}: row {usable.argmin()} is not finite or all zeros. Drop it, or make it again.")


_ROWS = _Form("finite numbers of shape (images, width)", 2, "fiu")
_LABELS = _Form("whole numbers of shape (images,), places in class_names", 1, "iu")
_FORMS = {
    "train_x": _ROWS,
    "train_y": _LABELS,
    "test_x": _ROWS,
    "test_y": _LABELS,
    "class_names": _Form("names of shape (classes,)", 1, "USiu"),
    "text": _Form("finite numbers of shape (classes, width)", 2, "fiu", optional=True),
    "examples": _Form("JPEG files in base64, of shape (examples,)", 1, "U", optional=True),
}


def check_arrays(arrays: Mapping[str, Any], path: object) -> None:
    """Refuse arrays of a domain that are missing or of another form; `path` is where they are from."""
    for part, form in _FORMS.items():
        form.check(arrays.get(part), f"{path}: {part}")


def check_domain(domain: EmbeddedDomain, path: object) -> None:
    """Refuse a domain whose arrays do not fit together; `path` is where it is from."""
    classes, width = len(domain.class_names), domain.train_x.shape[1]
    for split in ("train", "test"):
        rows, labels = getattr(domain, f"{split}_x"), getattr(domain, f"{split}_y")
        if rows.shape != (len(labels), width):
            raise HyCalError(
                f"{path}: {split}_x has shape {rows.shape}; expected {(len(labels), width)}, one row for each label, "
                "as wide as train_x."
            )
        if labels.min() < 0 or labels.max() >= classes:
            found = f"goes from {labels.min()} to {labels.max()}"
            raise HyCalError(f"{path}: {split}_y {found}; expected 0 to {classes - 1}, places in class_names.")
    if len(set(domain.class_names)) < classes:
        twice = next(name for name in domain.class_names if domain.class_names.count(name) > 1)
        raise HyCalError(f"{path}: class_names has {twice!r} twice; expected a name of its own for each class.")
    unseen = set(range(classes)) - set(domain.train_y.tolist())
    if unseen:
        name = domain.class_names[min(unseen)]
        raise HyCalError(f"{path}: train_y has no image of class {name!r}; expected at least one of every class.")
    if domain.text is not None and domain.text.shape != (classes, width):
        raise HyCalError(f"{path}: text has shape {domain.text.shape}; expected {(classes, width)}, a row per class.")
