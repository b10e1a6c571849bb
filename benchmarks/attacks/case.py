"""One hostile case: what is promised, and a function that tries to break it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """A promise, and `attack`, which tries to break it in a folder and returns (held, what was measured)."""

    number: int
    promise: str
    attack: Callable[[Path], tuple[bool, str]]
