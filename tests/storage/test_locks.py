"""The lock of a file: one holder among threads and processes, and none after a kill."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hycal.errors import StorageError
from hycal.storage.locks import LockedError, hold_lock

HOLDER = """
import sys, time
from pathlib import Path
from hycal.storage.locks import hold_lock
with hold_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_another_process_holds_the_lock_until_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "p.hycal"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        began = time.monotonic()
        refused = pytest.raises(
            LockedError, match=r"Another program is changing .*p\.hycal and has not finished in 0\.2 s"
        )
        with refused, hold_lock(path, seconds=0.2):
            raise AssertionError("two holders")
        assert 0.2 <= time.monotonic() - began < 5
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    assert [file.name for file in tmp_path.iterdir()] == [".p.hycal.lock"]  # the killed holder left it
    with hold_lock(path, seconds=5):
        assert [file.name for file in tmp_path.iterdir()] == [".p.hycal.lock"]
    assert not list(tmp_path.iterdir())


def test_threads_hold_the_lock_one_after_the_other(tmp_path: Path) -> None:
    holding, most = 0, 0

    def hold() -> None:
        nonlocal holding, most
        for number in range(40):
            with hold_lock(tmp_path / "p.hycal"):
                holding += 1
                most = max(most, holding)
                time.sleep(0.001 * (number % 3 == 0))
                holding -= 1

    threads = [threading.Thread(target=hold) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1 and holding == 0 and not list(tmp_path.iterdir())


def test_a_lock_on_a_file_that_its_holder_removed_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between opening and locking the file, the holder before may have removed it, and another may hold a new one."""
    hidden, real, turns = tmp_path / ".p.hycal.lock", fcntl.flock, []

    def flock(descriptor: int, operation: int) -> None:
        if not turns:
            hidden.unlink()
            hidden.touch()
        turns.append(descriptor)
        real(descriptor, operation)

    monkeypatch.setattr("fcntl.flock", flock)
    with hold_lock(tmp_path / "p.hycal", seconds=0):
        assert len(turns) == 2 and os.path.samestat(hidden.stat(), os.fstat(turns[-1]))


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK])
def test_a_file_system_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(StorageError, match="has no file locks"), hold_lock(tmp_path / "p.hycal", seconds=0.1):
        raise AssertionError("no lock was held")


def test_an_error_inside_frees_the_lock_and_a_folder_that_refuses_says_so(tmp_path: Path) -> None:
    with pytest.raises(KeyError), hold_lock(tmp_path / "p.hycal"):
        raise KeyError
    with hold_lock(tmp_path / "p.hycal", seconds=0):
        pass
    (tmp_path / "file").write_bytes(b"")
    refused = pytest.raises(StorageError, match=r"cannot be changed: .* Nothing was changed")
    with refused, hold_lock(tmp_path / "file" / "p.hycal"):
        raise AssertionError("no folder")
