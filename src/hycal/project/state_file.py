"""One file on the disk, and the state that was last read from it or written to it.

A reader keeps the `state` that it got: it never changes. A change takes the lock, reads the file again if another
process changed it, makes the next state, writes it, and then shows it to readers. A file that was replaced by another
model, of another encoder or method, is neither read nor changed.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

from hycal.errors import HyCalError, ModelFileError, MovedOnError, storing
from hycal.project.file import project_content, state_of
from hycal.project.journal import append, frame_of, journal_of, read_journal, replay
from hycal.project.state import State, lost_images
from hycal.storage import model_file
from hycal.storage.atomic import check_folder, clear_drafts, real_file, sync_folder
from hycal.storage.codec import rounded
from hycal.storage.locks import SECONDS_TO_WAIT, LockedError, hold_lock

T = TypeVar("T")
_Stamp = tuple[int, int, int] | None

MOST_FRAMES = 256  # of a journal; the next change writes the whole file
MOST_JOURNAL_BYTES = 16 * 2**20


class StateFile:
    """A state in a file; safe to share between threads, and with other processes.

    Parameters
    ----------
    empty : State, optional
        The state of a project that has no file yet. The first change writes the file.
    journal : bool, default=False
        Append changes to a journal beside the file. The cost of a change then depends on its size, not on the size of
        the model. `close` writes the journal into the file; so does a change once the journal is long. Readers see no
        difference.
    seconds_to_wait : float
        How long a change waits for another writer before it raises LockedError.

    Attributes
    ----------
    on_loss : callable or None
        Called with the content hashes of images that another process has removed for good, when this object sees it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        empty: State | None = None,
        *,
        journal: bool = False,
        seconds_to_wait: float = SECONDS_TO_WAIT,
    ) -> None:
        self.path = _file_at(Path(path))
        self.on_loss: Callable[[set[bytes]], None] | None = None
        self._empty = empty
        self._appends = journal
        self._seconds = seconds_to_wait
        self._refreshing = threading.Lock()
        self._kind = None if empty is None else empty.kind
        self._seen = self._read()
        self._kind = self._seen.state.kind

    @classmethod
    def create(cls, path: str | os.PathLike[str], state: State, *, precision: str = "single") -> Self:
        """Write a new project file that holds `state`; an existing file is never replaced."""
        target = _file_at(Path(path))
        check_folder(target)
        with hold_lock(target):
            if target.exists():
                raise HyCalError(f"{target} exists already and is not replaced. Choose another name, or remove it.")
            _write_first(target, state, precision)
        return cls(target)

    @property
    def state(self) -> State:
        """The last state that was read or written."""
        return self._seen.state

    @property
    def exists(self) -> bool:
        """Whether the project has a file."""
        return self.path.is_file()

    def refresh(self) -> State:
        """Return the state in the file; read it if another process changed it."""
        with self._refreshing:
            return self._renewed()

    def current(self) -> State:
        """Return the newest state without waiting: as `refresh`, or the last one while this object writes."""
        if not self._refreshing.acquire(blocking=False):
            return self._seen.state
        try:
            return self._renewed()
        finally:
            self._refreshing.release()

    @property
    def waiting(self) -> int:
        """Number of changes that are in the journal and not in the file."""
        return self._seen.frames

    def close(self) -> None:
        """Write the changes of the journal into the file. Readers and other changes do not wait for it.

        The new file is written beside the old one, and replaces it unless another process did so first. Changes that
        came meanwhile stay in the journal; replay ignores the earlier ones.
        """
        journal = journal_of(self.path)
        if not self._appends or not journal.exists():
            return
        self.refresh()
        seen = self._seen
        with (
            model_file.prepared(self.path, project_content(seen.state)) as install,
            hold_lock(self.path, seconds=self._seconds),
            self._refreshing,
        ):
            self._renewed()
            if self._seen.stamps[0] != seen.stamps[0]:
                return
            install()
            self._show(self._seen.state, frames=self._seen.frames - seen.frames, used=self._seen.used)
            if self._seen.state is seen.state:
                self._drop_journal()

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever learned."""
        return not self.exists and not self.state.version

    def check_new(self) -> None:
        """Refuse a project that has learned something: its encoder stays as it is."""
        if not self.is_new:
            raise MovedOnError(
                f"{self.path} has learned something already, so its encoder stays: embeddings of two encoders cannot "
                "be compared. Nothing was changed. Learn the images again into a new model: hycal learn NEW.hycal "
                "FOLDER --encoder NAME."
            )

    def start_from(self, empty: State) -> None:
        """Start from `empty`, of another method or encoder: possible until the first change is made."""
        with hold_lock(self.path, seconds=self._seconds), self._refreshing:
            self._renewed()
            self.check_new()
            self._empty, self._kind = empty, empty.kind
            self._seen = self._read()

    def change(self, step: Callable[[State], tuple[State, T]], *, whole: bool = False) -> T:
        """Write the state that `step` returns, and then show it to readers; if anything fails, nothing is changed.

        With `whole`, the file is written, and the journal is gone before: it holds what `step` may remove.
        """
        check_folder(self.path)
        with hold_lock(self.path, seconds=self._seconds):
            before = self.refresh()
            if whole and journal_of(self.path).exists():
                self._settle()
            following, result = step(before)
            if following is not before:
                same = following.kind == before.kind and not following.sealed  # frames hold no methods, and no moments
                appends = self._appends and not whole and same
                with self._refreshing:  # else a reader would think that another process wrote the file
                    self._append(following) if appends and self.exists else self._write(following)
        return result

    def change_for_good(self, step: Callable[[State], tuple[State, T]]) -> T:
        """Write the state that `step` returns; then no byte that it removes is in any file, nor in this object."""
        try:
            result = self.change(step, whole=True)  # a journal would keep the images
        finally:
            cleared = clear_drafts(self.path, seconds=self._seconds)
        with self._refreshing:
            self._seen = self._read()  # the state so far shares arrays with the one before, and what it derived
        if not cleared:
            raise LockedError(
                f"The images are forgotten in {self.path}, but another program is still writing the model as it was "
                "before, to a file that will not be used. Do it again: the file is removed once that program ends."
            )
        return result

    def _renewed(self) -> State:
        if self._stamps() != self._seen.stamps:
            before, self._seen = self._seen.state, self._read()
            lost = set() if self.on_loss is None else lost_images(before, self._seen.state)
            if lost and self.on_loss is not None:
                self.on_loss(lost)
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
        self._kind = following.kind
        self._show(following, frames=0, used=0)
        self._drop_journal()

    def _settle(self) -> None:
        """Write the changes of the journal into the file, and remove the journal."""
        with self._refreshing, storing(self.path):
            self._write(self._seen.state)
            journal_of(self.path).unlink(missing_ok=True)

    def _drop_journal(self) -> None:
        with contextlib.suppress(OSError):  # the file has every change, and replay ignores frames already in it
            journal_of(self.path).unlink()
            sync_folder(self.path.parent)
        self._show(self._seen.state, frames=0, used=0)

    def _show(self, state: State, *, frames: int, used: int) -> None:
        self._seen = _Seen(state, self._stamps(), frames, used)

    def _read(self) -> _Seen:
        while True:
            stamps = self._stamps()  # before reading: a later change is then seen next time
            if stamps[0] is None:
                return _Seen(self._start(), stamps)
            state = model_file.read_as(self.path, state_of)
            self._check_kind(state)
            journal = read_journal(journal_of(self.path))
            if self._stamps()[0] == stamps[0]:  # else another process has written the journal into the file since
                found = replay(state, journal, source=journal_of(self.path))
                self._kind = found.state.kind
                return _Seen(found.state, stamps, found.frames, found.used)

    def _check_kind(self, state: State) -> None:
        """Refuse a file that another program made, or put there, with another encoder or method."""
        if self._kind in (None, state.kind) or self._goes_on(state):
            return
        assert self._kind is not None
        mine, theirs = (f"a {of[0]} model of encoder {of[1]} ({of[2]} numbers)" for of in (self._kind, state.kind))
        raise MovedOnError(
            f"{self.path} holds another model now: {theirs if mine != theirs else 'one with other parameters'}, and "
            f"here it was opened as {mine}. Another program made it or put it there meanwhile. Nothing was changed. "
            "Open it again, or choose another path."
        )

    def _goes_on(self, state: State) -> bool:
        """Whether `state` is a later one of the same model: then another program has changed its method."""
        last = self._seen.state if hasattr(self, "_seen") else None
        if last is None or not last.history or last.space != state.space:
            return False
        return any(entry.id == last.history[-1].id for entry in state.history)

    def _start(self) -> State:
        if self._empty is None:
            raise ModelFileError(
                f"There is no model at {self.path}. Check the path; `hycal learn {self.path} FOLDER` makes one."
            )
        return self._empty

    def _stamps(self) -> tuple[_Stamp, _Stamp]:
        return _stamp(self.path), _stamp(journal_of(self.path))


def _file_at(path: Path) -> Path:
    """Return the file of a project; refuse a path that has no name, such as "." or "/"."""
    if not path.name:
        raise ModelFileError(f"{path} is a folder; expected the name of a model's file, such as photos.hycal.")
    return real_file(path)


@dataclass(frozen=True)
class _Seen:
    """What was last read or written: the state, the stamps of both files, and how much of the journal is valid."""

    state: State
    stamps: tuple[_Stamp, _Stamp]
    frames: int = 0
    used: int = 0


def _write_first(path: Path, state: State, precision: str = "single") -> None:
    """Write the first file of a project. A journal that a removed project left must not be replayed on it."""
    journal_of(path).unlink(missing_ok=True)
    model_file.write(path, rounded(project_content(state), precision))


def _stamp(path: Path) -> _Stamp:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
