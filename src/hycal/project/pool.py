"""Every example that a file holds, once: those that are learned, then those that only an undo would bring back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hycal.project.examples import Example, Shelf
from hycal.validation import Floats

_KEY = 32


@dataclass(eq=False)
class Pool:
    """Examples and texts, each with a number: its place. Those that come later while writing are appended."""

    examples: list[Example]
    texts: list[Floats]
    _example_number: dict[int, int] = field(init=False)
    _text_number: dict[bytes, int] = field(init=False)

    def __post_init__(self) -> None:
        self._example_number = {id(example): number for number, example in enumerate(self.examples)}
        self._text_number = {text.tobytes(): number for number, text in enumerate(self.texts)}

    def shelve(self, shelf: Shelf) -> dict[str, Any]:
        """Return the shelf as plain numbers, after giving one to what has none yet."""
        return {
            "domain": shelf.domain,
            "examples": [self._number(example) for example in shelf.examples],
            "text": None if shelf.text is None else self._text(shelf.text),
        }

    def shelf(self, plain: Mapping[str, Any]) -> Shelf:
        """Return the shelf of what `shelve` returned."""
        numbers, text, domain = plain["examples"], plain["text"], plain["domain"]
        if not isinstance(domain, str) or any(number < 0 for number in numbers) or (text is not None and text < 0):
            raise ValueError("a shelf of the undo has a number below zero, or a domain that is no text")
        vector = None if text is None else self.texts[text]
        return Shelf.of(domain, [self.examples[number] for number in numbers], vector)

    def _number(self, example: Example) -> int:
        if id(example) not in self._example_number:
            self._example_number[id(example)] = len(self.examples)
            self.examples.append(example)
        return self._example_number[id(example)]

    def _text(self, text: Floats) -> int:
        key = text.tobytes()
        if key not in self._text_number:
            self._text_number[key] = len(self.texts)
            self.texts.append(text)
        return self._text_number[key]


def packed(examples: Sequence[Example]) -> dict[str, npt.NDArray[Any]]:
    """Return the provenance of `examples` as tensors."""
    keys = b"".join(example.key or bytes(_KEY) for example in examples)
    names, name_ends = _joined([example.name.encode("utf-8", "surrogateescape") for example in examples])
    thumbnails, thumbnail_ends = _joined([example.thumbnail for example in examples])
    return {
        "project.keys": np.frombuffer(keys, np.uint8).reshape(-1, _KEY),
        "project.names": names,
        "project.name_ends": name_ends,
        "project.thumbnails": thumbnails,
        "project.thumbnail_ends": thumbnail_ends,
    }


def unpacked(rows: Sequence[Floats], tensors: Mapping[str, npt.NDArray[Any]]) -> list[Example]:
    """Return the examples of `rows` with the provenance that the tensors hold, if they hold any."""
    if "project.keys" not in tensors:
        return [Example(row) for row in rows]
    keys = tensors["project.keys"]
    if keys.dtype != np.uint8 or keys.shape != (len(rows), _KEY):
        raise ValueError("project.keys must have 32 bytes for each example")
    names = _parted(tensors, "project.names", "project.name_ends", len(rows))
    thumbnails = _parted(tensors, "project.thumbnails", "project.thumbnail_ends", len(rows))
    return [
        Example(row, key.tobytes() if key.any() else b"", name.decode("utf-8", "surrogateescape"), thumbnail)
        for row, key, name, thumbnail in zip(rows, keys, names, thumbnails, strict=True)
    ]


def _joined(parts: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return np.frombuffer(b"".join(parts), np.uint8), ends


def _parted(tensors: Mapping[str, npt.NDArray[Any]], name: str, ends_name: str, count: int) -> list[bytes]:
    joined, ends = tensors[name], tensors[ends_name]
    sound = joined.dtype == np.uint8 and joined.ndim == 1 and ends.dtype == np.int64 and ends.shape == (count,)
    if not sound or np.any(np.diff(ends, prepend=0) < 0) or (count and ends[-1] != len(joined)):
        raise ValueError(f"{name} and {ends_name} do not fit together")
    content = joined.tobytes()
    return [content[start:end] for start, end in pairwise([0, *ends.tolist()])]
