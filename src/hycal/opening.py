"""`hycal.load`: the classifier in a file, whatever else the file is part of."""

from __future__ import annotations

import os
from pathlib import Path

from hycal import loading
from hycal.base import IncrementalClassifier
from hycal.project import Project
from hycal.project.journal import journal_of


def load(path: str | os.PathLike[str]) -> IncrementalClassifier:
    """Return the classifier saved at `path`, by `save` or as a project.

    Raises
    ------
    ModelFileError
        The file is missing, malformed, or of a newer format. Nothing in it is executed.
    """
    if journal_of(Path(path)).exists():  # changes that the file has not taken in yet
        return Project(path).state.classifier
    return loading.load(path)
