"""A project: one file that is both model and project, and the state that was last read from it.

Readers take `state` and keep it: it never changes. A change takes the lock, reads the file again if somebody else
changed it, makes the next state, writes it, and only then lets readers see it. A correction that cannot wait for the
whole file goes to a journal beside it, which belongs to the file until the next change is written.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from hycal import modelfile
from hycal.errors import HyCalError, ModelFileError
from hycal.project import changes
from hycal.project.changes import Arrival, Receipt
from hycal.project.examples import Example
from hycal.project.finding import find, image
from hycal.project.journal import Correction, Journal
from hycal.project.locking import SECONDS_TO_WAIT, writing
from hycal.project.state import State
from hycal.project.storing import project_content, state_of
from hycal.validation import Floats

T = TypeVar("T")
_Stamp = tuple[tuple[int, int, int] | None, ...]
_NO_FILE: _Stamp = (None, None)


class Project:
    """A project file; safe to share between threads, and with other processes.

    Parameters
    ----------
    path : path
    empty : State, optional
        What the project starts with if there is no file yet. Nothing is written before the first change.

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

    def __init__(
        self, path: str | os.PathLike[str], empty: State | None = None, *, seconds_to_wait: float = SECONDS_TO_WAIT
    ) -> None:
        self.path = Path(path)
        self._empty = empty
        self._seconds = seconds_to_wait
        self._refreshing = threading.Lock()
        self._journal = Journal(self.path)
        self._stamp = _NO_FILE
        self._state = self._read()

    @classmethod
    def create(cls, path: str | os.PathLike[str], state: State) -> Project:
        """Write a new project file that holds `state`; an existing file is never replaced."""
        target = Path(path)
        _check_folder(target)
        with writing(target):
            if target.exists():
                raise HyCalError(f"{target} exists already and is not replaced. Choose another name, or remove it.")
            modelfile.write(target, project_content(state))
        return cls(target)

    @property
    def state(self) -> State:
        """The last state that was read or written: whole, and never changed."""
        return self._state

    @property
    def exists(self) -> bool:
        """Whether there is a file yet."""
        return self.path.is_file()

    def refresh(self) -> State:
        """Return the state in the file, reading it if another process has changed it."""
        with self._refreshing:
            return self._renewed()

    def current(self) -> State:
        """Return the newest state without waiting: what `refresh` does, unless a change is being written here."""
        if not self._refreshing.acquire(blocking=False):
            return self._state
        try:
            return self._renewed()
        finally:
            self._refreshing.release()

    def learn(self, arrivals: Sequence[Arrival], texts: Mapping[str, Floats] | None = None) -> Receipt:
        """Learn images; see `hycal.project.changes.learn`."""
        return self.change(lambda state: changes.learn(state, arrivals, texts))

    def correct(self, example: Example, label: str, texts: Mapping[str, Floats] | None = None) -> Receipt:
        """Say what an image shows; see `hycal.project.changes.correct`."""
        return self.change(lambda state: changes.correct(state, example, label, texts))

    def correct_at_once(self, example: Example, label: str, texts: Mapping[str, Floats] | None = None) -> Receipt:
        """Do as `correct`, on the disk within milliseconds: in the journal, until `settle` or any other change."""

        def keep(state: State) -> None:
            last = state.history[-1]
            text = state.shelves[label].text
            self._journal.append(Correction(example, label, text, last.when, last.after))

        whole = not self.exists  # a journal continues a file
        return self.change(
            lambda state: changes.correct(state, example, label, texts), keep=self._write if whole else keep
        )

    def settle(self) -> None:
        """Put what is in the journal into the file."""
        if not self._journal.path.exists():
            return
        with writing(self.path, seconds=self._seconds):
            state = self.refresh()
            if self._journal.read():
                self._install(state, self._write)

    def forget(self, name: str | bytes, *, for_good: bool = False) -> Receipt:
        """Forget a class, a domain or an image, by name, or an image by its content hash."""

        def step(state: State) -> tuple[State, Receipt]:
            target = image(state, name) if isinstance(name, bytes) else find(state, name)
            return changes.forget(state, target, for_good=for_good)

        return self.change(step)

    def rename(self, old: str, new: str) -> Receipt:
        """Rename a class or a domain."""
        return self.change(lambda state: changes.rename(state, find(state, old), new))

    def undo(self) -> Receipt:
        """Take the last change back."""
        return self.change(changes.undo)

    def merge(self, other: State) -> Receipt:
        """Learn all that another project learned."""
        return self.change(lambda state: changes.merge(state, other))

    def change(self, step: Callable[[State], tuple[State, T]], *, keep: Callable[[State], None] | None = None) -> T:
        """Make the state that `step` leads to, on the disk first; if anything fails, all is as it was.

        Parameters
        ----------
        step : callable
            From a state to the next one and a result.
        keep : callable, optional
            Puts the next state on the disk; by default, writes the whole file.
        """
        _check_folder(self.path)
        with writing(self.path, seconds=self._seconds):
            before = self.refresh()
            following, result = step(before)
            if following is not before:
                self._install(following, keep or self._write)
        return result

    def _write(self, state: State) -> None:
        modelfile.write(self.path, project_content(state))
        self._journal.clear()

    def _install(self, state: State, keep: Callable[[State], None]) -> None:
        with self._refreshing:
            keep(state)
            self._state, self._stamp = state, self._stamp_now()

    def _renewed(self) -> State:
        if self._stamp_now() != self._stamp:
            self._state = self._read()
        return self._state

    def _read(self) -> State:
        while True:
            self._stamp = self._stamp_now()
            state = self._read_once()
            if self._stamp_now() == self._stamp:  # else file and journal may not belong together
                return state

    def _read_once(self) -> State:
        if not self.exists and self._empty is not None:
            return self._empty
        if not self.exists:
            raise ModelFileError(
                f"There is no model at {self.path}. Check the path; `hycal learn {self.path} FOLDER` makes one."
            )
        state = state_of(modelfile.read(self.path))
        for correction in self._journal.read():
            state = self._replayed(state, correction)
        return state

    def _replayed(self, state: State, correction: Correction) -> State:
        texts = {} if correction.text is None else {correction.label: correction.text}
        following, _ = changes.correct(state, correction.example, correction.label, texts)
        if following.hash != correction.after:
            raise ModelFileError(
                f"The journal {self._journal.path} does not lead to the model {correction.after} that it promises. "
                "Remove it to go on without its corrections."
            )
        *earlier, last = following.history
        return replace(following, history=(*earlier, replace(last, when=correction.when)))

    def _stamp_now(self) -> _Stamp:
        return _stamp_of(self.path), _stamp_of(self._journal.path)


def _stamp_of(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _check_folder(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise HyCalError(f"Cannot write {path}: the folder {path.parent} does not exist. Make it first.")
