"""What an encoder is: images, and perhaps texts, to unit embeddings in one named space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from PIL import Image

from hycal.validation import Floats


@runtime_checkable
class Encoder(Protocol):
    """Maps images, and texts where it has a text tower, to unit vectors of one space.

    Attributes
    ----------
    name : str
        The entry in the encoder table, for example "clip-vit-b16".
    dimension : int
        Width d of the embeddings.
    fingerprint : str
        Hash of weights, preprocessing and tokenizer. Two encoders share a space if and only if they share it.
    has_text : bool
        Whether `encode_texts` works.
    """

    name: str
    dimension: int
    fingerprint: str
    has_text: bool

    def preprocess(self, image: Image.Image) -> Floats:
        """Return the (3, height, width) input of one image. Thread-safe; called while others encode."""

    def encode(self, batch: Floats) -> Floats:
        """Return (n, d) unit embeddings of (n, 3, height, width) inputs. A row does not depend on its neighbours."""

    def encode_texts(self, texts: Sequence[str]) -> Floats:
        """Return (n, d) unit embeddings of texts, or raise HyCalError saying which files are missing."""
