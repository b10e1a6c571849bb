"""Learned images with their provenance, by class. They are immutable, so the states of a project share them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hycal.state.records import ClassRecord
from hycal.state.samples import ClassSamples
from hycal.validation import Floats


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
