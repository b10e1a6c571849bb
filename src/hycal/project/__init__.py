"""Projects: a model file with its images, history and exact undo; learning, answers, evaluation and advice.

`serve` and `commands` import it.
It never prints, never parses a command line, and never speaks HTTP.

Examples
--------
>>> from hycal.project import DEFAULT_METHOD, LENGTH, UNDO_DEPTH
>>> DEFAULT_METHOD, LENGTH, UNDO_DEPTH
('HierarchicalHyCal', 1000, 20)
"""

from hycal.project.changes import Arrival, Receipt
from hycal.project.examples import ClassExamples, Example, Space
from hycal.project.labels import Target, class_label, find, find_class, split_label
from hycal.project.methods import DEFAULT_METHOD, empty_state
from hycal.project.project import Project, ReadOnlyProject, load
from hycal.project.state import LENGTH, UNDO_DEPTH, HistoryEntry, State, lost_images
from hycal.storage.locks import LockedError

__all__ = [
    "DEFAULT_METHOD",
    "LENGTH",
    "UNDO_DEPTH",
    "Arrival",
    "ClassExamples",
    "Example",
    "HistoryEntry",
    "LockedError",
    "Project",
    "ReadOnlyProject",
    "Receipt",
    "Space",
    "State",
    "Target",
    "class_label",
    "empty_state",
    "find",
    "find_class",
    "load",
    "lost_images",
    "split_label",
]
