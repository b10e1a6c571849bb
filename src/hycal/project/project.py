"""A project: a model with its images, and all that can be done to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from hycal.base import IncrementalClassifier
from hycal.classifiers.loader import load_classifier
from hycal.errors import MovedOnError, ReadOnlyError
from hycal.project import changes, reversals, sealed, views
from hycal.project.changes import Arrival, Receipt
from hycal.project.examples import Example, Space
from hycal.project.journal import journal_of
from hycal.project.labels import find, image
from hycal.project.methods import change_method
from hycal.project.state import State, lost_images
from hycal.project.state_file import StateFile, T
from hycal.validation import Floats


class Project(StateFile):
    """A model with its images, history and exact undo, in one file; parameters as `StateFile`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from hycal.project import Arrival, Example, Space, empty_state
    >>> space = Space("none", None, 3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     project = Project(f"{folder}/pets.hycal", empty_state(space, has_text=False))
    ...     rows = np.eye(3, dtype=np.float32)
    ...     receipt = project.learn([Arrival("pets/cat", Example(rows[0])), Arrival("pets/dog", Example(rows[1]))])
    ...     project.state.labels, project.forget("pets/dog").images, project.undo().after == receipt.after
    (('pets/cat', 'pets/dog'), {'pets/dog': 1}, True)
    """

    def learn(self, arrivals: Sequence[Arrival], texts: Mapping[str, Floats] | None = None) -> Receipt:
        """Learn images; see `hycal.project.changes.learn`."""
        return self.change(lambda state: operations(state).learn(state, arrivals, texts))

    def correct(self, example: Example, label: str, texts: Mapping[str, Floats] | None = None) -> Receipt:
        """Learn an image as `label`, and as no other class; see `hycal.project.changes.correct`."""
        return self.change(lambda state: operations(state).correct(state, example, label, texts))

    def forget(self, name: str | bytes) -> Receipt:
        """Forget a class, a domain or an image, by name, or an image by its content hash."""
        return self.change(
            lambda state: operations(state).forget(
                state, image(state, name) if isinstance(name, bytes) else find(state, name)
            )
        )

    def forget_for_good(self, name: str | bytes, erase: Callable[[set[bytes]], None] = lambda lost: None) -> Receipt:
        """Forget a class, a domain or an image, and remove all undo data from the file.

        When it returns, no byte of the images is left in the file, in the journal, or in drafts of either, and this
        object holds none of them. If it was interrupted, do it again: the file then has the images still, or nothing is
        left of them but drafts, which are removed also if the name is not found.

        Parameters
        ----------
        name : str or bytes
        erase : callable
            Called before the file changes, with the content hashes of all images that leave it. If it raises, nothing
            is changed.
        """

        def step(state: State) -> tuple[State, Receipt]:
            if state.sealed:
                return sealed.forget(state, find(state, name.hex() if isinstance(name, bytes) else name))
            following, receipt = reversals.forget_for_good(state, name.hex() if isinstance(name, bytes) else name)
            erase(lost_images(state, following))
            return following, receipt

        return self.change_for_good(step)

    def rename(self, old: str, new: str) -> Receipt:
        """Rename a class or a domain."""
        return self.change(lambda state: operations(state).rename(state, find(state, old), new))

    def change_method(self, method: str) -> Receipt:
        """Derive the model by another method from now on; see `hycal.project.methods.change_method`."""
        return self.change(lambda state: change_method(state, method))

    def add_view(self, part: Space, rows: Mapping[bytes, Floats], texts: Mapping[str, Floats] | None = None) -> Receipt:
        """Add the view of an encoder; see `hycal.project.views.add_view`."""
        return self.change(lambda state: views.add_view(state, part, rows, texts))

    def drop_view(self, name: str) -> Receipt:
        """Drop the view of an encoder: afterwards the model is the one that never had it."""
        return self.change(lambda state: views.drop_view(state, name))

    def undo(self, *, expected: str | None = None, only_if: str | None = None) -> Receipt:
        """Reverse the last change.

        Parameters
        ----------
        expected : str, optional
            Only if this names the change, as its receipt and the history do. So an undo that is sent again, because its
            answer got lost, never reverses a second change: it raises MovedOnError.
        only_if : str, optional
            Only if the model has this hash.
        """

        def step(state: State) -> tuple[State, Receipt]:
            _check_same(state, only_if, "taken back. Look at its history: undo again if you mean its last change")
            return reversals.undo(state, expected=expected)

        return self.change(step)

    def redo(self, *, expected: str | None = None, only_if: str | None = None) -> Receipt:
        """Make the change again that the last undo took back. Parameters as `undo`; `expected` names that undo."""

        def step(state: State) -> tuple[State, Receipt]:
            _check_same(state, only_if, "made again. Look at its history: redo again if you mean its last undo")
            return reversals.redo(state, expected=expected)

        return self.change(step)

    def merge(self, other: State) -> Receipt:
        """Learn every image of another project."""
        return self.change(lambda state: operations(state).merge(state, other))


class ReadOnlyProject(Project):
    """A project that this object never changes, nor any file beside it; it follows what other programs change.

    Examples
    --------
    >>> import tempfile
    >>> from hycal.project import Space, empty_state
    >>> with tempfile.TemporaryDirectory() as folder:  # doctest: +ELLIPSIS
    ...     project = Project.create(f"{folder}/pets.hycal", empty_state(Space("none", None, 3), has_text=False))
    ...     ReadOnlyProject(project.path).forget("pets/dog")
    Traceback (most recent call last):
    hycal.errors.ReadOnlyError: pets.hycal is open to be read only, so nothing was changed. ...
    """

    def change(self, step: Callable[[State], tuple[State, T]], *, whole: bool = False) -> NoReturn:
        """Refuse the change."""
        raise ReadOnlyError(
            f"{self.path.name} is open to be read only, so nothing was changed. Change it by `hycal learn` or another "
            "command, or by a server without --read-only; this one follows."
        )

    def change_for_good(self, step: Callable[[State], tuple[State, T]]) -> NoReturn:
        """Refuse the change."""
        self.change(step)

    def start_from(self, empty: State) -> NoReturn:
        """Refuse the change."""
        self.change(lambda state: (empty, None))

    def close(self) -> None:
        """Leave the journal to the programs that write it."""


def operations(state: State) -> Any:
    """Return what can be done to a model: the functions of `changes`, or those of `sealed` if it is."""
    return sealed if state.sealed else changes


def _check_same(state: State, only_if: str | None, advice: str) -> None:
    if only_if not in (None, state.hash):
        raise MovedOnError(f"The model has been changed since, so nothing was {advice}.")


def load(path: str | os.PathLike[str]) -> IncrementalClassifier:
    """Return the classifier saved at `path`, by `save` or as a project.

    Raises
    ------
    ModelFileError
        The file is missing, malformed, or of a newer format. Nothing in it is executed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hycal import NCM, load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "animals.safetensors"
    ...     NCM().fit([[1.0, 0.0], [0.0, 1.0]], ["cat", "dog"]).save(path)
    ...     load(path).predict([[0.9, 0.1]])
    array(['cat'], dtype='<U3')
    """
    if journal_of(Path(path)).exists():  # it has changes that are not in the file
        return Project(path).state.classifier
    return load_classifier(path)
