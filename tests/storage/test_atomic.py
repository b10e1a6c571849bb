"""Atomic writes: complete, durable, with the mode of the old file, and without what killed writers left."""

import contextlib
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hycal import NCM, HyCalError
from hycal.storage.atomic import check_replaceable, install, replacing, write_whole

WRITER = """
import sys
from pathlib import Path
from hycal.storage.atomic import replacing
with replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    print("writing", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "odd [name]*.bin"


def other_writer(target: Path) -> "subprocess.Popen[bytes]":
    """Return a process that has begun to write `target`, and ends the write when its input is closed."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, target], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"writing\n"
    return process


def test_the_folder_is_made_and_holds_only_the_file(tmp_path: Path) -> None:
    write_whole(tmp_path / "new" / "file", b"one")
    write_whole(tmp_path / "new" / "file", b"two")
    assert [(path.name, path.read_bytes()) for path in (tmp_path / "new").iterdir()] == [("file", b"two")]


@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt])
def test_a_failed_write_changes_nothing(target: Path, failure: type[BaseException]) -> None:
    write_whole(target, b"old")
    with pytest.raises(failure), replacing(target) as file:
        file.write(b"new")
        raise failure
    assert target.read_bytes() == b"old"
    assert list(target.parent.iterdir()) == [target]


def test_content_is_on_the_disk_before_the_name_and_the_name_after(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, bytes | None]] = []
    fsync = os.fsync

    def watch(descriptor: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        synced.append((kind, target.read_bytes() if target.exists() else None))
        fsync(descriptor)

    monkeypatch.setattr("os.fsync", watch)
    write_whole(target, b"x")
    assert synced == [("file", None), ("folder", b"x")]


def test_mode_is_that_of_the_old_file_or_of_any_new_one(target: Path) -> None:
    write_whole(target, b"")
    plain = target.with_name("plain")
    plain.touch()
    assert target.stat().st_mode == plain.stat().st_mode
    target.chmod(0o640)
    write_whole(target, b"")
    assert target.stat().st_mode & 0o777 == 0o640


def test_what_a_killed_writer_left_is_removed_by_the_next(target: Path) -> None:
    with other_writer(target) as process:
        process.send_signal(signal.SIGKILL)
    neighbour = target.with_name(".another.0.part")
    neighbour.mkdir()
    assert len(list(target.parent.iterdir())) == 2
    write_whole(target, b"whole")
    assert set(target.parent.iterdir()) == {target, neighbour}


def test_a_living_writer_is_left_alone_and_the_last_one_stays(target: Path) -> None:
    with other_writer(target) as process:
        write_whole(target, b"between")
        assert target.read_bytes() == b"between"
        process.communicate()
    assert process.returncode == 0 and target.read_bytes() == b"half"
    assert list(target.parent.iterdir()) == [target]


def test_a_library_may_replace_the_file_it_was_given(target: Path) -> None:
    """Under the mode that any new file has, whatever mode the library chose."""
    with replacing(target) as file:
        private = Path(file.name).with_name("own")
        private.write_bytes(b"by name")
        private.chmod(0o600)
        private.replace(file.name)
    target.with_name("plain").touch()
    assert target.read_bytes() == b"by name"
    assert target.stat().st_mode == target.with_name("plain").stat().st_mode


def test_many_writers_at_once_never_mix(target: Path) -> None:
    contents = [bytes([number]) * 10_000 for number in range(8)]
    failures: list[BaseException] = []

    def work(content: bytes) -> None:
        try:
            for _ in range(20):
                write_whole(target, content)
                assert target.read_bytes() in contents
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert list(target.parent.iterdir()) == [target]


def test_a_file_without_the_mark_is_not_replaced(target: Path) -> None:
    target.write_bytes(b"someone else's")
    with pytest.raises(HyCalError, match="hycal did not write, so it is not replaced"):
        write_whole(target, b"made by hycal", mark=b"by hycal")
    assert target.read_bytes() == b"someone else's"
    write_whole(target, b"made by hycal")
    write_whole(target, b"again by hycal", mark=b"by hycal")
    assert target.read_bytes() == b"again by hycal"


def test_an_empty_file_has_nothing_to_lose(target: Path) -> None:
    target.touch()
    write_whole(target, b"made by hycal", mark=b"by hycal")
    assert target.stat().st_size


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes in folders")
def test_pipes_devices_and_folders_are_never_replaced(tmp_path: Path) -> None:
    odd = [tmp_path / "pipe", tmp_path / "link", tmp_path / "folder"]
    os.mkfifo(odd[0])
    odd[1].symlink_to(odd[0])
    odd[2].mkdir()
    with contextlib.suppress(OSError):  # only root may make a device
        os.mknod(tmp_path / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        odd.append(tmp_path / "device")
    before = [(path.lstat().st_ino, path.lstat().st_mode) for path in odd]
    (tmp_path / "part").write_bytes(b"new")
    for path in odd:
        with pytest.raises(HyCalError, match="not an ordinary file"):
            write_whole(path, b"new")
        with pytest.raises(HyCalError, match="not an ordinary file"):
            install(tmp_path / "part", path)
    assert [(path.lstat().st_ino, path.lstat().st_mode) for path in odd] == before


def test_a_model_replaces_models_only(tmp_path: Path) -> None:
    model = NCM().fit([[1, 0], [0, 1]], ["a", "b"])
    for _ in range(2):
        model.save(tmp_path / "model")
    (tmp_path / "thesis").write_text("three years")
    with pytest.raises(HyCalError, match="not replaced"):
        model.save(tmp_path / "thesis")
    check_replaceable(tmp_path / "none")
