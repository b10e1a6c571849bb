"""What an encoder is: the class behind every back end, an image tower and perhaps a text tower; and several as one.

A combined encoder puts the unit vectors of its parts, the views of an image, side by side in a row. The parts are
ordered by name, so "a+b" and "b+a" are the same encoder, and a view that is added later stands where it would have
stood from the start. A part of a row that is all zeros is a view that the image does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from PIL import Image

from hycal.encoders.catalog import JOINED_BY, Backend
from hycal.encoders.preprocessing import Preprocessing
from hycal.errors import HyCalError
from hycal.validation import Floats, unit_rows, view_slices

_TEXTS_AT_ONCE = 64
Rows = npt.NDArray[Any]


@runtime_checkable
class Encoder(Protocol):
    """An encoder maps images, and texts where it has a text tower, to unit vectors of one space.

    Attributes
    ----------
    name : str
        The entry of the encoder table, for example "clip-vit-b16".
    dimension : int
        Width d of the embeddings.
    fingerprint : str
        Hash of weights, preprocessing, tokenizer, and quantisation if any. Two encoders share a space if their
        fingerprints are equal.
    has_text : bool
        Whether `encode_texts` works.

    Examples
    --------
    >>> from hycal.encoders import load_encoder
    >>> encoder = load_encoder("builtin")
    >>> isinstance(encoder, Encoder), encoder.dimension, encoder.has_text
    (True, 512, False)
    """

    name: str
    dimension: int
    fingerprint: str
    has_text: bool

    def preprocess(self, image: Image.Image) -> Floats:
        """Return the (3, height, width) input of one image. Thread-safe: other threads may encode meanwhile."""

    def encode(self, batch: Floats) -> Floats:
        """Return (n, d) unit embeddings of (n, 3, height, width) inputs. A row does not depend on the other inputs."""

    def encode_texts(self, texts: Sequence[str]) -> Floats:
        """Return (n, d) unit embeddings of texts, or raise a HyCalError that names the missing files."""


@dataclass(frozen=True)
class Towers:
    """The functions of a back end: vectors of any length for pixels (n, 3, height, width), and for texts if it can.

    `graph` returns the image tower as a serialised ONNX graph, where it is one.
    """

    image: Callable[[Floats], Rows]
    text: Callable[[Sequence[str]], Rows] | None
    graph: Callable[[], bytes] | None = None


@dataclass(kw_only=True, eq=False)
class TowerEncoder:
    """An `Encoder` made of towers."""

    name: str
    dimension: int
    fingerprint: str
    preprocessing: Preprocessing
    towers: Towers
    no_text: str  # the error for texts where there is no text tower
    backend: Backend = "onnx"  # the library that runs the image tower
    has_text: bool = field(init=False)

    def __post_init__(self) -> None:
        self.has_text = self.towers.text is not None

    @property
    def preprocess(self) -> Callable[[Image.Image], Floats]:
        """The function from one image to its (3, height, width) input; it can be pickled, without the towers."""
        return self.preprocessing.apply

    def image_graph(self) -> bytes:
        """Return the image tower as a serialised ONNX graph, from (n, 3, size, size) inputs to embeddings."""
        if self.towers.graph is None:
            raise HyCalError(
                f"{self.name} runs on {self.backend} here, whose image tower is no ONNX graph that others can run. Use "
                "an encoder that runs on ONNX Runtime, with its weights in float32: `hycal encoders list`."
            )
        return self.towers.graph()

    def encode(self, batch: Floats) -> Floats:
        """Return (n, d) unit embeddings of (n, 3, height, width) inputs."""
        side = self.preprocessing.size
        if batch.ndim != 4 or batch.shape[1:] != (3, side, side):
            raise HyCalError(
                f"{self.name} got a batch of shape {batch.shape}; expected (n, 3, {side}, {side}). "
                "Stack the results of `preprocess`."
            )
        if not len(batch):
            return self._nothing()
        return self._checked(self.towers.image(np.ascontiguousarray(batch, dtype=np.float32)))

    def encode_texts(self, texts: Sequence[str]) -> Floats:
        """Return (n, d) unit embeddings of texts, or raise a HyCalError that names the missing files."""
        tower = self.towers.text
        if tower is None:
            raise HyCalError(self.no_text)
        parts = [texts[at : at + _TEXTS_AT_ONCE] for at in range(0, len(texts), _TEXTS_AT_ONCE)]
        return np.concatenate([self._nothing(), *(self._checked(tower(part)) for part in parts)])

    def _nothing(self) -> Floats:
        return np.empty((0, self.dimension), dtype=np.float32)

    def _checked(self, rows: Rows) -> Floats:
        """Return `rows` scaled to unit length; refuse rows that are no embeddings of this encoder."""
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise HyCalError(
                f"{self.name} gave embeddings of shape {rows.shape}; expected (n, {self.dimension}). "
                "The weights are those of another model, or give something else than the projected embedding."
            )
        if not np.isfinite(rows).all() or not rows.any(axis=1).all():
            raise HyCalError(
                f"{self.name} gave vectors that are zero or not finite, which are no embeddings. The weights are "
                "damaged, or those of another model; get them again."
            )
        return unit_rows(rows)


@dataclass(frozen=True)
class MissingEncoder:
    """An encoder that a model was learned with and that cannot be used here: the rows lack its view."""

    name: str
    dimension: int
    fingerprint: str  # as the model states it
    reason: str  # why it cannot be used, and what to do


class CombinedEncoder:
    """An `Encoder` made of several, of which each embeds an image by its own preprocessing.

    Parameters
    ----------
    parts : sequence of Encoder or MissingEncoder
        Two or more, in any order, no two of the same name; one of them must be here.

    Attributes
    ----------
    parts : tuple of Encoder or MissingEncoder
        Ordered by name.
    views : tuple of int
        Width of each part, as the parameter `views` of a classifier takes it.

    Examples
    --------
    >>> from hycal.encoders import load_encoder
    >>> encoder = CombinedEncoder([load_encoder("builtin"), MissingEncoder("other", 4, "f1", "It is not installed.")])
    >>> encoder.name, encoder.views, encoder.dimension
    ('builtin+other', (512, 4), 516)
    """

    def __init__(self, parts: Sequence[Encoder | MissingEncoder]) -> None:
        self.parts = tuple(sorted(parts, key=lambda part: part.name))
        names = [part.name for part in self.parts]
        if len(set(names)) < max(2, len(names)):
            raise HyCalError(f"An encoder cannot be combined of {names}; expected two or more different ones.")
        if not self.present:
            raise HyCalError(" ".join(dict.fromkeys(part.reason for part in self.missing)))
        self.name = JOINED_BY.join(names)
        self.views = tuple(part.dimension for part in self.parts)
        self.dimension = sum(self.views)
        self.fingerprint = JOINED_BY.join(part.fingerprint for part in self.parts)
        self.has_text = any(part.has_text for part in self.present)

    @property
    def present(self) -> tuple[Encoder, ...]:
        """The parts that are here."""
        return tuple(part for part in self.parts if not isinstance(part, MissingEncoder))

    @property
    def missing(self) -> tuple[MissingEncoder, ...]:
        """The parts that are not."""
        return tuple(part for part in self.parts if isinstance(part, MissingEncoder))

    @property
    def columns(self) -> list[slice]:
        """The columns of each part that is here."""
        pairs = zip(self.parts, view_slices(self.views), strict=True)
        return [own for part, own in pairs if not isinstance(part, MissingEncoder)]

    @property
    def preprocess(self) -> Callable[[Image.Image], Floats]:
        """The function from one image to the inputs of all parts that are here, one after the other; picklable."""
        return SideBySide(tuple(part.preprocess for part in self.present))

    @cached_property
    def _shapes(self) -> list[tuple[int, ...]]:
        grey = Image.new("RGB", (64, 64), "grey")
        return [part.preprocess(grey).shape for part in self.present]

    def encode(self, batch: Floats) -> Floats:
        """Return (n, d) rows of (n, m) inputs, the results of `preprocess`; each part of a row has unit length."""
        inputs = split_inputs(batch, self._shapes)
        return self._rows(len(batch), [part.encode(own) for part, own in zip(self.present, inputs, strict=True)])

    def encode_texts(self, texts: Sequence[str]) -> Floats:
        """Return (n, d) rows of texts: by the parts with a text tower, and zeros in the others."""
        if not self.has_text:
            raise HyCalError(
                f"No part of the encoder {self.name!r} has a text tower here. Use images alone, or combine it with a "
                "CLIP encoder that has its text files: `hycal encoders list` shows which have them."
            )
        parts = [part.encode_texts(texts) if part.has_text else None for part in self.present]
        return self._rows(len(texts), parts)

    def _rows(self, count: int, parts: Sequence[Floats | None]) -> Floats:
        rows = np.zeros((count, self.dimension), np.float32)
        for own, part in zip(self.columns, parts, strict=True):
            if part is not None:
                rows[:, own] = part
        return rows


@dataclass(frozen=True)
class SideBySide:
    """The preprocessing of several encoders: the inputs of one image as one vector, one after the other."""

    functions: tuple[Callable[[Image.Image], Floats], ...]

    def __call__(self, image: Image.Image) -> Floats:
        """Return the inputs of `image`."""
        return np.concatenate([function(image).ravel() for function in self.functions])


def split_inputs(inputs: Floats, shapes: Sequence[tuple[int, ...]]) -> list[Floats]:
    """Return the parts of inputs that `SideBySide` made, each in its shape; axes before the last one are kept."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    if inputs.shape[-1] != sum(sizes):
        raise HyCalError(
            f"A combined encoder got inputs of shape {inputs.shape}; expected {sum(sizes)} numbers for each image. "
            "Stack the results of `preprocess`."
        )
    own = zip(view_slices(sizes), shapes, strict=True)
    return [inputs[..., part].reshape(*inputs.shape[:-1], *shape) for part, shape in own]


def present_parts(encoder: Encoder) -> tuple[Encoder, ...]:
    """Return the encoders that make the rows of `encoder`: itself, or the parts of a combined one that are here."""
    return encoder.present if isinstance(encoder, CombinedEncoder) else (encoder,)


def present_columns(encoder: Encoder) -> list[slice]:
    """Return the columns of each of `present_parts` in a row of `encoder`."""
    return encoder.columns if isinstance(encoder, CombinedEncoder) else [slice(0, encoder.dimension)]
