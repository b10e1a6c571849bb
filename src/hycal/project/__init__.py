"""Projects: a model file with the images behind it, its history, and exact undo. No command line, no web."""

from hycal.project.changes import Arrival, Receipt
from hycal.project.examples import ClassExamples, Example
from hycal.project.labels import class_label, split_label
from hycal.project.lookup import Target, find, find_class
from hycal.project.methods import DEFAULT_METHOD, empty_state
from hycal.project.project import Project, load
from hycal.project.state import LENGTH, UNDO_DEPTH, Entry, Space, State, gone
from hycal.storage.locks import LockedError

__all__ = [
    "DEFAULT_METHOD",
    "LENGTH",
    "UNDO_DEPTH",
    "Arrival",
    "ClassExamples",
    "Entry",
    "Example",
    "LockedError",
    "Project",
    "Receipt",
    "Space",
    "State",
    "Target",
    "class_label",
    "empty_state",
    "find",
    "find_class",
    "gone",
    "load",
    "split_label",
]
