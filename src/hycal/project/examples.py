"""Learned images with their provenance, by class, and the space of their embeddings.

They are immutable, so the states of a project share them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hycal.encoders.catalog import JOINED_BY
from hycal.errors import HyCalError
from hycal.state.records import ClassRecord
from hycal.state.samples import ClassSamples
from hycal.validation import Floats, view_slices


@dataclass(frozen=True, eq=False)
class Example:
    """One learned image.

    Attributes
    ----------
    row : ndarray of shape (d,)
        Its unit embedding.
    key : bytes
        Content hash of the image, 32 bytes; b"" if the project has its embedding only.
    name : str
        Name of its file.
    thumbnail : bytes
        A small JPEG of it, or b"".

    Examples
    --------
    >>> Example(np.array([1.0, 0.0], np.float32), key=b"12", name="1.jpg").identity
    b'12'
    """

    row: Floats
    key: bytes = b""
    name: str = ""
    thumbnail: bytes = b""

    @cached_property
    def identity(self) -> bytes:
        """The content hash, or a hash of the embedding if there is none; equal for the same image."""
        return self.key or hashlib.sha256(b"row" + self.row.tobytes()).digest()


@dataclass(frozen=True, eq=False)
class ClassExamples:
    """The examples of one class, in the canonical order of their rows, with its domain and text embedding.

    Examples
    --------
    >>> rose = Example(np.array([1.0, 0.0], np.float32), name="1.jpg")
    >>> [example.name for example in ClassExamples.of("flower", [rose]).examples]
    ['1.jpg']
    """

    domain: str
    examples: tuple[Example, ...]
    text: Floats | None = None

    @classmethod
    def of(cls, domain: str, examples: Iterable[Example], text: Floats | None = None) -> ClassExamples:
        """Return the class of `examples`, given in any order."""
        return cls(domain, tuple(sorted(examples, key=lambda e: (e.row.tobytes(), e.key, e.name))), text)

    @classmethod
    def of_record(cls, record: ClassRecord, examples: Iterable[Example]) -> ClassExamples:
        """Return the class of a record that a classifier already has, so that it is not made again."""
        class_ = cls.of(record.domain, examples, record.text)
        vars(class_)["record"] = record
        return class_

    @cached_property
    def record(self) -> ClassRecord:
        """What the classifier learns of the class. The examples are in canonical order, so nothing is sorted again."""
        if self.examples:
            rows = np.stack([example.row for example in self.examples])
        else:
            rows = np.empty((0, 0 if self.text is None else len(self.text)), np.float32)
        return ClassRecord(ClassSamples(rows), self.domain, self.text)

    @property
    def count(self) -> int:
        """Images learned; a sealed class counts them and has none."""
        return self.record.count

    @property
    def rows(self) -> Floats:
        """Embeddings, shape (K, d); K is 0 for a class that has a text only."""
        return self.record.samples.rows

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of what the classifier learns of the class."""
        head = json.dumps([self.domain, self.count, self.text is not None], ensure_ascii=False)
        digest = hashlib.sha256(f"{head}\n".encode())
        for example in self.examples:
            digest.update(example.row.tobytes())
        if self.record.moments is not None:
            for part in (self.record.moments.centre, self.record.moments.mean, self.record.moments.factor):
                digest.update(part.tobytes())
        if self.text is not None:
            digest.update(self.text.tobytes())
        return digest.digest()

    def with_examples(self, examples: Iterable[Example]) -> ClassExamples:
        """Return the class with more examples."""
        return ClassExamples.of(self.domain, (*self.examples, *examples), self.text)

    def without(self, identities: Iterable[bytes]) -> ClassExamples | None:
        """Return the class without the examples of these identities; None if none is left."""
        unwanted = set(identities)
        kept = tuple(e for e in self.examples if e.identity not in unwanted)
        return ClassExamples(self.domain, kept, self.text) if kept else None


@dataclass(frozen=True)
class Space:
    """The space of the embeddings: name and fingerprint of the encoder, and the number of dimensions.

    `views` are the widths of the parts of a combined encoder, whose names and fingerprints are joined by "+".

    Examples
    --------
    >>> Space("builtin", None, 512).dimension
    512
    """

    name: str
    fingerprint: str | None
    dimension: int
    views: tuple[int, ...] | None = None

    @classmethod
    def joined(cls, parts: Iterable[Space]) -> Space:
        """Return the space of several parts side by side, ordered by name; the space itself of one part."""
        ordered = sorted(parts, key=lambda part: part.name)
        if len(ordered) == 1:
            return ordered[0]
        views = tuple(part.dimension for part in ordered)
        prints = [part.fingerprint for part in ordered if part.fingerprint is not None]
        fingerprint = JOINED_BY.join(prints) if len(prints) == len(ordered) else None
        return cls(JOINED_BY.join(part.name for part in ordered), fingerprint, sum(views), views)

    @property
    def parts(self) -> tuple[Space, ...]:
        """The space of each view; itself if there are none. A name is "" if the space does not say it."""
        if self.views is None:
            return (self,)
        count = len(self.views)
        names, prints = self.name.split(JOINED_BY), (self.fingerprint or "").split(JOINED_BY)
        names = names if len(names) == count else [""] * count
        prints = prints if len(prints) == count else [""] * count
        return tuple(
            Space(name, own or None, width) for name, own, width in zip(names, prints, self.views, strict=True)
        )

    def widened(self, rows: Floats, name: str) -> Floats:
        """Return rows of the view called `name` as rows of the space: the other views are zeros. "" is all views."""
        if not name:
            return rows
        own = [columns for part, columns in zip(self.parts, self.columns, strict=True) if part.name == name.lower()]
        if not own or rows.shape[1] != own[0].stop - own[0].start:
            views = ", ".join(f"{part.name or 'not named'} of {part.dimension} numbers" for part in self.parts)
            raise HyCalError(
                f"Rows of {rows.shape[1]} numbers as the view {name!r}; this model has {views}. Name one of these, "
                "and send the embeddings that its encoder makes."
            )
        wide = np.zeros((len(rows), self.dimension), np.float32)
        wide[:, own[0]] = rows
        return wide

    @property
    def columns(self) -> list[slice]:
        """The columns of each part."""
        return view_slices([part.dimension for part in self.parts])
