"""What a client can do with the pile of a service: ask, put off, see groups; the routes add HTTP."""

from __future__ import annotations

import io
import threading
from dataclasses import asdict
from typing import Any

import numpy as np
from PIL import Image

from hycal.embedding.preparation import ImageOrder, isolated
from hycal.parallel.threads import one_blas_thread
from hycal.pile.discovery import ImageGroup, describe_groups, discover
from hycal.project import Example, State
from hycal.serve.pile.images import PileImage, PileView
from hycal.serve.pile.queue import LabelQueue
from hycal.serve.pile.schemas import PileOut
from hycal.serve.pile.sorting import PileSorter
from hycal.serve.service import Service, UnknownImageError
from hycal.validation import Floats

TARGET = 0.95  # accuracy of the rest to which labels are counted
MOST_GROUPS = 24
MAY_BE_UNKNOWN = 0.05  # share of images of learned classes that may be called unknown

Groups = list[tuple[ImageGroup, list[bytes]]]  # a group, and the content hashes of its images
SIDE, _QUALITY = 720, 82  # of a picture for the screen: pixels of the longer side, quality of the JPEG


class PileDesk:
    """The pile of a service, its queue and its sorter."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.pile = service.pile
        self.queue = LabelQueue(service.pile)
        self.sorter = PileSorter(service.pile)
        self._grouping = threading.Lock()
        self._groups: tuple[tuple[int, int], Groups] | None = None

    def status(self, state: State) -> PileOut:
        """Return how far the pile is."""
        order, view, out = self.queue.order(state), self.pile.view(), self.sorter.out
        rest = None if order is None or not state.classes else order.rest
        status = {
            **asdict(self.pile.counts),
            "folder": self.pile.name,
            "out": None if out is None else out.name,
            "sorted": self.sorter.is_sorted,
            "labelled": sum(image.key in state.label_of for image in view.images),
            "problem": self.pile.problem,
            "people": self.queue.leases.people,
            "rest": rest,
            "target": TARGET,
            "more": None if rest is None else self.queue.more_labels(TARGET),
        }
        return PileOut.model_validate(status)

    def take(self, state: State, person: str, most: int, first: str | None = None) -> list[Example]:
        """Return images to ask a person about, the most useful first; `first` among them if it is free."""
        wanted = [key for key in [bytes.fromhex(first or "")] if self.pile.get(key)]
        keys = self.queue.take(state, person, most, first=wanted)
        return [found for key in keys if (found := self.pile.example(key)) is not None]

    def groups(self, state: State) -> Groups:
        """Return groups among the images that fit no class, and that nobody has labelled; the largest first."""
        view = self.pile.view()
        version = state.version, len(view.images)
        with self._grouping:
            if self._groups is None or self._groups[0] != version:
                left = self._strange(state, view)
                self._groups = (
                    version,
                    _group(state, [view.images[row] for row in left], view.rows[left]) if left else [],
                )
            return self._groups[1]

    def _strange(self, state: State, view: PileView) -> list[int]:
        """Return the rows to group: all that nobody has labelled; a sealed model can only say which fit no class."""
        left = [row for row, image in enumerate(view.images) if image.key not in state.label_of]
        if not state.sealed or not left:
            return left
        unknown = self._service.unknown(state, view.rows[left], MAY_BE_UNKNOWN)
        return [row for row, strange in zip(left, unknown, strict=True) if strange is not False]

    def picture(self, identity: str) -> bytes:
        """Return an image of the pile as a JPEG for the screen."""
        found = self.pile.get(bytes.fromhex(identity))
        content = None if found is None else self.pile.content(found)
        if content is None:
            raise UnknownImageError(f"The pile no longer has the image {identity[:12]}.")
        return preview(content, most_pixels=self.pile.limits.image_pixels)

    def stop(self) -> None:
        """Let no work go on in the background."""
        self.pile.stop()
        self.queue.stop()

    def clear(self) -> None:
        """Remove the images that were dropped, the queue and the groups; what was learned stays learned."""
        self.pile.clear()
        self.queue.clear()
        with self._grouping:
            self._groups = None


def _group(state: State, images: list[PileImage], rows: Any) -> Groups:
    alone = not state.classes or state.sealed
    with one_blas_thread():
        found = describe_groups(rows, discover(rows, None if alone else state.classifier))
    return [(group, list(dict.fromkeys(images[row].key for row in group.rows))) for group in found[:MOST_GROUPS]]


def preview(content: bytes, *, most_pixels: int) -> bytes:
    """Return an image file as a JPEG of at most 720 pixels; raise an ImageError if it cannot be decoded.

    The files of a pile may come from anywhere, so none is sent as it is, and none is decoded in the server.
    """
    prepared = isolated()(content, ImageOrder(_pixels, most_pixels, thumbnail=False))
    buffer = io.BytesIO()
    Image.fromarray(prepared.tensor.astype(np.uint8)).save(buffer, "JPEG", quality=_QUALITY)
    return buffer.getvalue()


def _pixels(picture: Image.Image) -> Floats:
    picture.thumbnail((SIDE, SIDE), Image.Resampling.BICUBIC)
    return np.asarray(picture.convert("RGB"), np.float32)
