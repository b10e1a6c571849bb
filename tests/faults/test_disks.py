"""A full or read-only disk: nothing is lost, and the message says what to do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from hycal import HyCalError
from hycal.embedding import EmbeddingCache
from hycal.errors import StorageError
from hycal.project import Project
from hycal.project.journal import journal_of
from hycal.serve.app import make_app
from hycal.serve.service import Service
from hycal.storage.locks import hold_lock
from tests.faults.disks import files_no_larger_than, filled, read_only, small_disk
from tests.support.projects import arrivals, example, pets_and_cars

CHANGES = {
    "learn": lambda project: project.learn(arrivals("pets/cow", 1, 2, 3)),
    "forget": lambda project: project.forget("pets/dog"),
    "rename": lambda project: project.rename("pets/dog", "pets/wolf"),
    "undo": lambda project: project.undo(),
    "correct": lambda project: project.correct(example("pets/cat", 1), "pets/dog"),
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as folder:
        yield folder


WAYS = pytest.mark.parametrize("journal", [False, True], ids=["whole", "journal"])


def check_refused(path: Path, change: str, journal: bool) -> Project:
    """A refused change leaves file, memory and folder as they were; return the project, which can do it later."""
    project = Project(path, journal=journal)
    before, content = project.state.hash, path.read_bytes()
    with pytest.raises(StorageError, match="Nothing was changed"):
        CHANGES[change](project)
    assert path.read_bytes() == content
    assert project.state.hash == project.refresh().hash == Project(path).state.hash == before
    assert not list(path.parent.glob("*.part"))
    return project


@WAYS
@pytest.mark.parametrize("change", CHANGES)
def test_a_write_that_is_cut_short(change: str, journal: bool, tmp_path: Path) -> None:
    pets_and_cars(tmp_path / "p.hycal")
    with files_no_larger_than(100):
        project = check_refused(tmp_path / "p.hycal", change, journal)
    assert CHANGES[change](project).after == Project(tmp_path / "p.hycal").state.hash


@WAYS
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("unfit", [filled, read_only])
def test_a_disk_that_is_full_or_may_only_be_read(
    unfit: Callable[[Path], AbstractContextManager[None]], change: str, journal: bool, disk: Path
) -> None:
    pets_and_cars(disk / "p.hycal")
    with unfit(disk):
        project = check_refused(disk / "p.hycal", change, journal)
    assert CHANGES[change](project).after == Project(disk / "p.hycal").state.hash


def test_a_refused_record_does_not_come_back(tmp_path: Path) -> None:
    """A journal that holds one correction, and whose second is cut off in the middle, holds one."""
    pets_and_cars(tmp_path / "p.hycal")
    project = Project(tmp_path / "p.hycal", journal=True)
    first = project.correct(example("pets/cat", 1), "pets/dog")
    journal = journal_of(tmp_path / "p.hycal")
    with files_no_larger_than(journal.stat().st_size + 100), pytest.raises(StorageError):
        project.correct(example("pets/cat", 2), "pets/dog")
    assert project.refresh().hash == Project(tmp_path / "p.hycal").state.hash == first.after
    second = project.correct(example("pets/cat", 2), "pets/dog")
    assert Project(tmp_path / "p.hycal").state.hash == second.after


def test_the_cache_on_a_full_disk(disk: Path) -> None:
    rows = np.ones((200, 64), np.float32)
    keys = [bytes([number]) * 32 for number in range(200)]
    with EmbeddingCache(disk / "cache", fingerprint="f", dimension=64) as cache:
        cache.add(keys[:5], rows[:5])
        with filled(disk), pytest.raises(HyCalError, match="Rows written before are kept"):
            cache.add(keys, rows)
        assert cache.known() == set(keys[:5])
        cache.add(keys, rows)
    with EmbeddingCache(disk / "cache", fingerprint="f", dimension=64) as cache:
        assert cache.known() == set(keys)


@pytest.mark.parametrize("fault", [filled, read_only])
def test_the_server_answers_on_and_says_why_it_cannot_change(fault, disk: Path) -> None:
    pets_and_cars(disk / "p.hycal")
    project = Project(disk / "p.hycal", journal=True)
    correction = {"image": example("pets/cat", 1).identity.hex(), "label": "pets/dog"}
    with TestClient(make_app(Service(project, None)), base_url="http://localhost") as client:
        before = client.get("/api/info").json()
        with fault(disk):
            refused = client.post("/api/correct", json=correction)
            assert refused.status_code == 507 and "Nothing was changed" in refused.json()["detail"]
            assert client.post("/api/undo").status_code == 507
            rows = {"rows": [example("pets/cat", 1).row.tolist()]}
            assert client.post("/api/classify-embeddings", json=rows).status_code == 200
            assert client.get("/api/info").json() == before
        accepted = client.post("/api/correct", json=correction)
        assert accepted.status_code == 200
    assert Project(disk / "p.hycal").state.hash == accepted.json()["after"]


def test_the_server_waits_for_another_writer_and_then_says_so(tmp_path: Path) -> None:
    pets_and_cars(tmp_path / "p.hycal")
    project = Project(tmp_path / "p.hycal", seconds_to_wait=0.1)
    with TestClient(make_app(Service(project, None)), base_url="http://localhost") as client:
        with hold_lock(tmp_path / "p.hycal"):
            refused = client.post("/api/undo")
        assert refused.status_code == 503 and "Another program is changing" in refused.json()["detail"]
        assert client.post("/api/undo").status_code == 200


def test_many_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "p.hycal"
    pets_and_cars(path)

    def work(writer: int) -> None:
        project = Project(path, seconds_to_wait=60)
        for number in range(6):
            project.learn(arrivals(f"writers/{writer}", number))

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    state = Project(path).state
    assert [len(state.classes[f"writers/{writer}"].examples) for writer in range(4)] == [6] * 4
    assert [entry.before for entry in state.history[1:]] == [entry.after for entry in state.history[:-1]]
