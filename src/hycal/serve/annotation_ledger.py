"""Which labels came from annotations of Label Studio, so that a deleted annotation can be taken back.

Label Studio says of a deleted annotation its number alone. This file beside the model remembers which image each
annotation labels, and the label that the image had before. It has hashes of images and names of classes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hycal.errors import HyCalError, storing
from hycal.escaping import json_text
from hycal.storage.atomic import write_whole

_VERSION = 1
_MARK = b'{"hycal-label-studio": 1,'


@dataclass
class AnnotatedImage:
    """The label that an image had before any annotation, None for none, and that of each annotation, newest last."""

    before: str | None
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str | None:
        """The label of the newest annotation, or the one of before."""
        return next(reversed(self.labels.values()), self.before)

    def without(self, annotation: str) -> AnnotatedImage:
        """Return the same without one annotation."""
        return AnnotatedImage(self.before, {key: label for key, label in self.labels.items() if key != annotation})


class Ledger:
    """The annotations of one model, in a file that is written at every change; safe to share between threads.

    The first change makes the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changing = threading.Lock()
        self._images: dict[str, AnnotatedImage] = _read(path)
        self._image_of = {key: image for image, found in self._images.items() for key in found.labels}

    def find(self, annotation: str) -> tuple[str, AnnotatedImage] | None:
        """Return the image of an annotation, by its hash, with all its labels; None if it is not known."""
        with self._changing:
            image = self._image_of.get(annotation)
            return None if image is None else (image, self._images[image])

    def add(self, annotation: str, image: str, label: str, before: str | None) -> None:
        """Note that an annotation gives an image this label; `before` counts for the first annotation of an image."""
        with self._changing:
            found = self._images.get(image, AnnotatedImage(before)).without(annotation)
            found.labels[annotation] = label
            self._images[image] = found
            self._image_of[annotation] = image
            self._write()

    def remove(self, annotation: str) -> None:
        """Forget an annotation."""
        with self._changing:
            image = self._image_of.pop(annotation, None)
            if image is None:  # its image was forgotten for good meanwhile
                return
            self._images[image] = self._images[image].without(annotation)
            if not self._images[image].labels:
                del self._images[image]
            self._write()

    def drop(self, images: Iterable[bytes]) -> None:
        """Forget images that were forgotten for good."""
        with self._changing:
            gone = {image.hex() for image in images} & set(self._images)
            for image in gone:
                for annotation in self._images.pop(image).labels:
                    del self._image_of[annotation]
            if gone:
                self._write()

    def keep(self, images: Iterable[bytes]) -> None:
        """Forget all images but these: what a model does not have cannot be taken back."""
        kept = {image.hex() for image in images}
        self.drop(bytes.fromhex(image) for image in set(self._images) - kept)

    def _write(self) -> None:
        images = {image: {"before": found.before, "labels": found.labels} for image, found in self._images.items()}
        with storing(self._path):
            write_whole(self._path, json_text({"hycal-label-studio": _VERSION, "images": images}).encode(), mark=_MARK)


def _read(path: Path) -> dict[str, AnnotatedImage]:
    try:
        content = json.loads(path.read_bytes())
        if content["hycal-label-studio"] != _VERSION:
            raise ValueError("it has another version")
        return {bytes.fromhex(image).hex(): _annotated(entry) for image, entry in content["images"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise HyCalError(
            f"{path} is not the list of annotations that `hycal serve --label-studio` writes: {error}. Move it away: "
            "then only annotations made from now on can be taken back."
        ) from None


def _annotated(entry: Any) -> AnnotatedImage:
    before, labels = entry["before"], entry["labels"]
    if not isinstance(before, str | None) or not all(isinstance(text, str) for pair in labels.items() for text in pair):
        raise ValueError("it has values of wrong types")
    return AnnotatedImage(before, labels)
