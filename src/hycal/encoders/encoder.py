"""What an encoder is, and the one class behind every back end: an image tower, and a text tower where there is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from PIL import Image

from hycal.encoders.catalog import Backend
from hycal.encoders.preprocessing import Preprocessing
from hycal.errors import HyCalError
from hycal.validation import Floats, unit_rows

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


class TowerEncoder:
    """An `Encoder` made of towers.

    Parameters
    ----------
    no_text : str
        The message of the error for texts where there is no text tower.
    backend : Backend
        The library that runs the image tower.
    """

    def __init__(
        self,
        *,
        name: str,
        dimension: int,
        fingerprint: str,
        preprocessing: Preprocessing,
        towers: Towers,
        no_text: str,
        backend: Backend = "onnx",
    ) -> None:
        self.name = name
        self.dimension = dimension
        self.fingerprint = fingerprint
        self.preprocessing = preprocessing
        self.has_text = towers.text is not None
        self.backend = backend
        self.towers = towers
        self.no_text = no_text

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
