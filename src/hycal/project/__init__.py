"""Projects: a model file with the images behind it, its history, and exact undo. No command line, no web."""

from hycal.project.changes import Arrival, Receipt
from hycal.project.choosing import DEFAULT_METHOD, empty_state
from hycal.project.examples import Example, Shelf, class_label, split_label
from hycal.project.finding import Target, find, find_class
from hycal.project.history import LENGTH, UNDO_DEPTH, Entry
from hycal.project.locking import LockedError
from hycal.project.project import Project
from hycal.project.state import Space, State, gone

__all__ = [
    "DEFAULT_METHOD",
    "LENGTH",
    "UNDO_DEPTH",
    "Arrival",
    "Entry",
    "Example",
    "LockedError",
    "Project",
    "Receipt",
    "Shelf",
    "Space",
    "State",
    "Target",
    "class_label",
    "empty_state",
    "find",
    "find_class",
    "gone",
    "split_label",
]
