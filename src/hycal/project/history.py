"""What was done to a project, and how to take it back.

An entry keeps, for the classes it changed, what they were before. Taking it back puts those shelves into their place
again, so an earlier state returns to the byte, and the states share every image that did not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from hycal.project.examples import Shelf
from hycal.validation import Label

UNDO_DEPTH = 20
LENGTH = 1000


@dataclass(frozen=True, eq=False)
class Undo:
    """What an entry's changes replaced: shelves by label (None: there was no such class), and the memo."""

    shelves: Mapping[Label, Shelf | None]
    memo: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Entry:
    """One accepted change.

    Attributes
    ----------
    when : str
        UTC, ISO 8601.
    action, what : str
        The operation, and one line about it for people. Never the name of an image.
    before, after : str
        Hash of the model before and after.
    undo : Undo or None
        None once it was taken back, lies deeper than `UNDO_DEPTH`, or was purged.
    """

    when: str
    action: str
    what: str
    before: str
    after: str
    undo: Undo | None = None

    @property
    def undoable(self) -> bool:
        """Whether an undo can take it back."""
        return self.undo is not None


History = tuple[Entry, ...]


def now() -> str:
    """Return the time of an entry that is made now."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def appended(history: History, entry: Entry) -> History:
    """Return the history with one more entry; the oldest undo, and the oldest entry, fall off the end."""
    grown = (*history, entry)[-LENGTH:]
    undoable = [number for number, old in enumerate(grown) if old.undo is not None]
    too_old = set(undoable[:-UNDO_DEPTH])
    return tuple(replace(old, undo=None) if number in too_old else old for number, old in enumerate(grown))


def undoable(history: History) -> Entry | None:
    """Return the entry that the next undo takes back."""
    return next((entry for entry in reversed(history) if entry.undo is not None), None)


def taken_back(history: History, entry: Entry) -> History:
    """Return the history in which `entry` can be taken back no more."""
    return tuple(replace(old, undo=None) if old is entry else old for old in history)


def purged(history: History) -> History:
    """Return the history without anything of earlier states but their hashes."""
    return tuple(replace(entry, undo=None) if entry.undo is not None else entry for entry in history)
