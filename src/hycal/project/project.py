"""A project: one file that is both model and project, and the state that was last read from it.

Readers take `state` and keep it: it never changes. A change takes the lock, reads the file again if somebody else
changed it, makes the next state, writes it, and only then lets readers see it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hycal.base import IncrementalClassifier
from hycal.classifiers.loading import load_classifier
from hycal.errors import HyCalError, ModelFileError, MovedOnError
from hycal.project import changes
from hycal.project.changes import Arrival, Receipt, forget_for_good
from hycal.project.examples import Example
from hycal.project.file import project_content, state_of
from hycal.project.journal import append, frame_of, journal_of, replay
from hycal.project.lookup import find, image
from hycal.project.state import State, gone
from hycal.storage import model_file
from hycal.storage.atomic import real_file, sync_folder
from hycal.storage.locks import SECONDS_TO_WAIT, writing
from hycal.validation import Floats

T = TypeVar("T")
_Stamp = tuple[int, int, int] | None

MOST_FRAMES = 256  # of a journal, before the file takes them in
MOST_JOURNAL_BYTES = 16 * 2**20


class Project:
    """A project file; safe to share between threads, and with other processes.

    Parameters
    ----------
    path : path
    empty : State, optional
        What the project starts with if there is no file yet. Nothing is written before the first change.
    journal : bool, default=False
        Append changes to a journal beside the file, which takes them in now and then and on `close`: a change then
        costs what it changes, not what the model weighs. For programs that make many; readers notice no difference.
    seconds_to_wait : float
        How long a change waits for another writer before it gives up.

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
        self,
        path: str | os.PathLike[str],
        empty: State | None = None,
        *,
        journal: bool = False,
        seconds_to_wait: float = SECONDS_TO_WAIT,
    ) -> None:
        self.path = real_file(Path(path))
        self._empty = empty
        self._appends = journal
        self._seconds = seconds_to_wait
        self._refreshing = threading.Lock()
        self._seen = self._read()

    @classmethod
    def create(cls, path: str | os.PathLike[str], state: State) -> Project:
        """Write a new project file that holds `state`; an existing file is never replaced."""
        target = real_file(Path(path))
        check_folder(target)
        with writing(target):
            if target.exists():
                raise HyCalError(f"{target} exists already and is not replaced. Choose another name, or remove it.")
            _write_first(target, state)
        return cls(target)

    @property
    def state(self) -> State:
        """The last state that was read or written: whole, and never changed."""
        return self._seen.state

    @property
    def exists(self) -> bool:
        """Whether there is a file yet."""
        return self.path.is_file()

    def refresh(self) -> State:
        """Return the state in the file, reading it if another process has changed it."""
        with self._refreshing:
            return self._renewed()

    def current(self) -> State:
        """Return the newest state without waiting: as `refresh`, unless this object is writing one at the moment."""
        if not self._refreshing.acquire(blocking=False):
            return self._seen.state
        try:
            return self._renewed()
        finally:
            self._refreshing.release()

    @property
    def waiting(self) -> int:
        """Changes that are in the journal and not in the file yet."""
        return self._seen.frames

    def close(self) -> None:
        """Let the file take in what the journal holds. Readers and other changes go on meanwhile.

        The file is written beside, and takes its place only if nobody else has replaced it. Changes that came after
        stay in the journal; those before are of no account in it any more.
        """
        journal = journal_of(self.path)
        if not self._appends or not journal.exists():
            return
        self.refresh()
        seen = self._seen
        with (
            model_file.prepared(self.path, project_content(seen.state)) as install,
            writing(self.path, seconds=self._seconds),
            self._refreshing,
        ):
            self._renewed()
            if self._seen.stamps[0] != seen.stamps[0]:
                return
            install()
            self._show(self._seen.state, frames=self._seen.frames - seen.frames, used=self._seen.used)
            if self._seen.state is seen.state:
                self._drop_journal()

    def learn(self, arrivals: Sequence[Arrival], texts: Mapping[str, Floats] | None = None) -> Receipt:
        """Learn images; see `hycal.project.changes.learn`."""
        return self.change(lambda state: changes.learn(state, arrivals, texts))

    def correct(self, example: Example, label: str, texts: Mapping[str, Floats] | None = None) -> Receipt:
        """Say what an image shows; see `hycal.project.changes.correct`."""
        return self.change(lambda state: changes.correct(state, example, label, texts))

    def forget(self, name: str | bytes) -> Receipt:
        """Forget a class, a domain or an image, by name, or an image by its content hash."""
        return self.change(
            lambda state: changes.forget(state, image(state, name) if isinstance(name, bytes) else find(state, name))
        )

    def forget_for_good(self, name: str | bytes, erase: Callable[[set[bytes]], None] = lambda lost: None) -> Receipt:
        """Forget so that no undo can bring it back, nor anything that was forgotten before.

        Parameters
        ----------
        name : str or bytes
        erase : callable
            Told, before the file changes, the content hashes of all images that it will hold no more. If it fails,
            nothing has changed.
        """

        def step(state: State) -> tuple[State, Receipt]:
            following, receipt = forget_for_good(state, name.hex() if isinstance(name, bytes) else name)
            erase(gone(state, following))
            return following, receipt

        return self.change(step, whole=True)  # a journal would still hold it

    def rename(self, old: str, new: str) -> Receipt:
        """Rename a class or a domain."""
        return self.change(lambda state: changes.rename(state, find(state, old), new))

    def undo(self, *, only_if: str | None = None) -> Receipt:
        """Take the last change back; if `only_if` is given, only from the model of that hash."""

        def step(state: State) -> tuple[State, Receipt]:
            if only_if not in (None, state.hash):
                raise MovedOnError(
                    "The model has been changed since, so nothing was taken back. Look at its history: undo again if "
                    "you mean its last change."
                )
            return changes.undo(state)

        return self.change(step)

    def merge(self, other: State) -> Receipt:
        """Learn all that another project learned."""
        return self.change(lambda state: changes.merge(state, other))

    def change(self, step: Callable[[State], tuple[State, T]], *, whole: bool = False) -> T:
        """Make the state that `step` leads to, on the disk first; if anything fails, all is as it was."""
        check_folder(self.path)
        with writing(self.path, seconds=self._seconds):
            before = self.refresh()
            following, result = step(before)
            if following is not before:
                with self._refreshing:  # else a reader would take the new file for that of another process
                    self._append(following) if self._appends and not whole and self.exists else self._write(following)
        return result

    def _renewed(self) -> State:
        if self._stamps() != self._seen.stamps:
            self._seen = self._read()
        return self._seen.state

    def _append(self, following: State) -> None:
        seen = self._seen
        journal, frame = journal_of(self.path), frame_of(seen.state, following)
        if seen.frames >= MOST_FRAMES or seen.used + len(frame) > MOST_JOURNAL_BYTES:
            self._write(following)
            return
        new = not journal.exists()
        append(journal, frame, used=seen.used)
        if new:
            sync_folder(journal.parent)
        self._show(following, frames=seen.frames + 1, used=seen.used + len(frame))

    def _write(self, following: State) -> None:
        if self.exists:
            model_file.write(self.path, project_content(following))
        else:
            _write_first(self.path, following)
        self._show(following, frames=0, used=0)
        self._drop_journal()

    def _drop_journal(self) -> None:
        with contextlib.suppress(OSError):  # the file has it all; frames that it has taken in are of no account
            journal_of(self.path).unlink()
            sync_folder(self.path.parent)
        self._show(self._seen.state, frames=0, used=0)

    def _show(self, state: State, *, frames: int, used: int) -> None:
        self._seen = _Seen(state, self._stamps(), frames, used)

    def _read(self) -> _Seen:
        while True:
            stamps = self._stamps()  # before reading: a change that comes in between is seen next time
            if stamps[0] is None:
                return _Seen(self._start(), stamps)
            state = state_of(model_file.read(self.path))
            journal = _content(journal_of(self.path))
            if self._stamps()[0] == stamps[0]:  # else the file took the journal in after we had read the file
                found = replay(state, journal, source=journal_of(self.path))
                return _Seen(found.state, stamps, found.frames, found.used)

    def _start(self) -> State:
        if self._empty is None:
            raise ModelFileError(
                f"There is no model at {self.path}. Check the path; `hycal learn {self.path} FOLDER` makes one."
            )
        return self._empty

    def _stamps(self) -> tuple[_Stamp, _Stamp]:
        return _stamp(self.path), _stamp(journal_of(self.path))


@dataclass(frozen=True)
class _Seen:
    """What was last read or written: the state, the files it was in, and how much of the journal counts."""

    state: State
    stamps: tuple[_Stamp, _Stamp]
    frames: int = 0
    used: int = 0


def _write_first(path: Path, state: State) -> None:
    """Write a project where there was none. A journal that a removed one left would be taken for this one's."""
    journal_of(path).unlink(missing_ok=True)
    model_file.write(path, project_content(state))


def _stamp(path: Path) -> _Stamp:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def check_folder(path: Path) -> None:
    """Refuse a project in a folder that does not exist."""
    if not path.absolute().parent.is_dir():
        raise HyCalError(f"Cannot write {path}: the folder {path.parent} does not exist. Make it first.")


def load(path: str | os.PathLike[str]) -> IncrementalClassifier:
    """Return the classifier saved at `path`, by `save` or as a project.

    Raises
    ------
    ModelFileError
        The file is missing, malformed, or of a newer format. Nothing in it is executed.
    """
    if journal_of(Path(path)).exists():  # changes that the file has not taken in yet
        return Project(path).state.classifier
    return load_classifier(path)
