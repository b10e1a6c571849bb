"""From images to what a project learns: embeddings in its space, content hashes, thumbnails, texts of class names."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass

from PIL import Image

from hycal.embedding.decoding import MOST_PIXELS, decode
from hycal.embedding.outcomes import Skipped, Tick
from hycal.embedding.pipeline import embed
from hycal.embedding.sources import Content, ImageSource, content_hash
from hycal.embedding.store import EmbeddingStore, space_of
from hycal.encoders.protocol import Encoder
from hycal.errors import HyCalError
from hycal.parallel.threads import kept_threads
from hycal.project.examples import Example, split_label
from hycal.project.state import Space, State
from hycal.validation import Floats, Label, unit_rows

SIDE = 96  # pixels of a thumbnail's longer side
MOST_BYTES = 3000
_QUALITIES = (60, 40, 20, 5)
_PROMPT = "a photo of a {}."


@dataclass(frozen=True)
class Seen:
    """Images that were embedded: by their number among the sources, and those that could not be used."""

    examples: dict[int, Example]
    skipped: tuple[Skipped, ...]


def space(encoder: Encoder) -> Space:
    """Return the space that an encoder embeds into."""
    return Space(encoder.name, space_of(encoder), encoder.dimension)


def check_encoder(state: State, encoder: Encoder) -> None:
    """Refuse an encoder whose embeddings cannot be compared with those in the project."""
    here, theirs = state.space, space(encoder)
    known = here.fingerprint is not None
    if (known and here.fingerprint != theirs.fingerprint) or here.dimension != theirs.dimension:
        raise HyCalError(
            f"This model was learned with encoder {here.name!r} ({here.fingerprint}, {here.dimension} numbers), and "
            f"{theirs.name!r} here gives {theirs.fingerprint} ({theirs.dimension} numbers). Their embeddings cannot be "
            "compared. Use the encoder it was learned with, or learn the images again into a new model."
        )


def see(
    sources: Sequence[ImageSource],
    encoder: Encoder,
    *,
    store: EmbeddingStore | None = None,
    watch: Callable[[Tick], None] | None = None,
    names: Sequence[str] | None = None,
    thumbnails: bool = True,
    known: Container[bytes] = (),
    most_pixels: int = MOST_PIXELS,
) -> Seen:
    """Embed images and make their thumbnails. An image that cannot be used is skipped, with its reason.

    Parameters
    ----------
    sources : sequence of ImageSource
    encoder : Encoder
    store : EmbeddingStore, optional
        The embedding cache.
    watch : callable, optional
        Told how far the embedding is.
    names : sequence of str, optional
        What the project calls the images; by default the names of the sources.
    thumbnails : bool, default=True
        Whether to make thumbnails: up to 3 kB for each image in the file.
    known : container of bytes
        Content hashes that the project knows already: they need no thumbnail again.
    most_pixels : int
        Larger images are skipped undecoded.
    """
    result = embed(sources, encoder, store=store, watch=watch, most_pixels=most_pixels)
    new = {
        key: sources[number]
        for number, key in zip(result.kept, result.keys, strict=True)
        if thumbnails and key not in known
    }
    pool = kept_threads(os.cpu_count() or 1, "hycal-decode")
    pictures = dict(zip(new, pool.map(_thumbnail_of, new.values(), new), strict=True))
    rows = unit_rows(result.rows) if len(result.rows) else result.rows
    called = [source.name for source in sources] if names is None else names
    examples = {
        int(number): Example(row, key, called[number], pictures.get(key, b""))
        for number, row, key in zip(result.kept, rows, result.keys, strict=True)
    }
    return Seen(examples, result.skipped)


def thumbnail(content: Content) -> bytes:
    """Return a small JPEG of an image, of at most about 3 kB."""
    picture = decode(content, enough=2 * SIDE)
    picture.thumbnail((SIDE, SIDE), Image.Resampling.BICUBIC)
    for quality in _QUALITIES:
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=quality, optimize=True)
        if buffer.tell() <= MOST_BYTES:
            break
    return buffer.getvalue()


def text_embeddings(labels: Iterable[Label], encoder: Encoder) -> dict[str, Floats]:
    """Return the text embedding of each class name, in the prompt of the paper; none without a text tower."""
    wanted = [str(label) for label in labels]
    if not encoder.has_text or not wanted:
        return {}
    prompts = [_PROMPT.format(split_label(label)[1].replace("_", " ")) for label in wanted]
    return dict(zip(wanted, unit_rows(encoder.encode_texts(prompts)), strict=True))


def _thumbnail_of(source: ImageSource, key: bytes) -> bytes:
    """Return the thumbnail of the image that was embedded; none if the file is no longer that image."""
    try:
        content = source.read()
        return thumbnail(content) if content_hash(content) == key else b""
    except HyCalError:
        return b""
