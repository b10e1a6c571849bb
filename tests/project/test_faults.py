"""Second writers and damaged files. What a kill leaves is tested in `tests/faults`."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from hycal import ModelFileError
from hycal.errors import MovedOnError
from hycal.project import LockedError, Project, Space, empty_state
from hycal.storage import model_file
from hycal.storage.locks import hold_lock
from tests.support.projects import SPACE, arrivals, example, new_project, pets_and_cars


def test_a_second_writer_is_told(tmp_path):
    project = pets_and_cars(tmp_path / "p.hycal")
    other = Project(tmp_path / "p.hycal", seconds_to_wait=0.1)
    before = (tmp_path / "p.hycal").read_bytes()
    with hold_lock(tmp_path / "p.hycal"), pytest.raises(LockedError, match="Another program is changing"):
        other.forget("cars")
    assert (tmp_path / "p.hycal").read_bytes() == before
    assert other.forget("cars").before == project.state.hash, "once the first is done, the second may"


def test_a_writer_sees_what_another_wrote(tmp_path):
    one, other = pets_and_cars(tmp_path / "p.hycal"), Project(tmp_path / "p.hycal")
    one.learn(arrivals("pets/cow", 1, 2))
    other.learn(arrivals("pets/cow", 2, 3))
    assert len(other.state.classes["pets/cow"].examples) == 3
    assert one.refresh().hash == other.state.hash and one.state.hash == other.state.hash


def test_readers_see_a_whole_model_while_others_write(tmp_path):
    project = pets_and_cars(tmp_path / "p.hycal")
    query, seen, done = example("pets/cat", 9).row[None], set(), threading.Event()
    sound = {4, 5}

    def read() -> None:
        while not done.is_set():
            state = project.state
            scores = state.classifier.decision_function(query)
            seen.add((scores.shape[1], len(state.labels)))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(15):
        project.learn(arrivals("pets/cow", 1, 2))
        project.undo()
    done.set()
    for thread in threads:
        thread.join()
    assert seen and all(columns == labels and labels in sound for columns, labels in seen)


def other_kind(path, what):
    """Make a model of another method, encoder or parameters."""
    space = Space("other", "other-space", SPACE.dimension) if what == "encoder" else SPACE
    method = {"method": "NCM"} if what == "method" else {}
    parameters = {"parameters": {"alpha": 3}} if what == "parameters" else {}
    Project(path, empty_state(space, has_text=False, **method, **parameters)).learn(arrivals("pets/cow", 1))


@pytest.mark.parametrize("what", ["encoder", "method", "parameters"])
def test_of_two_first_writers_one_is_told(tmp_path, what):
    late = new_project(tmp_path / "p.hycal")
    other_kind(tmp_path / "p.hycal", what)
    before = (tmp_path / "p.hycal").read_bytes()
    with pytest.raises(MovedOnError, match="holds another model now"):
        late.learn(arrivals("pets/cat", 1, 2))
    with pytest.raises(MovedOnError, match="holds another model now"):
        new_project(tmp_path / "p.hycal")
    assert (tmp_path / "p.hycal").read_bytes() == before


@pytest.mark.parametrize("journal", [False, True])
@pytest.mark.parametrize("what", ["encoder", "method"])
def test_a_file_that_was_replaced_by_another_kind_is_neither_read_nor_changed(tmp_path, what, journal):
    path = tmp_path / "p.hycal"
    pets_and_cars(path)
    opened = Project(path, journal=journal)
    path.unlink()
    other_kind(path, what)
    for use in (opened.refresh, opened.current, lambda: opened.learn(arrivals("pets/cat", 8)), opened.undo):
        with pytest.raises(MovedOnError, match="holds another model now"):
            use()
    assert Project(path).state.labels == ("pets/cow",)


def test_a_restored_copy_of_the_same_kind_is_read(tmp_path):
    path = tmp_path / "p.hycal"
    project = pets_and_cars(path)
    copy = path.read_bytes()
    project.forget("cars")
    path.write_bytes(copy)
    assert project.refresh().labels == ("cars/cat", "cars/mini", "pets/cat", "pets/dog")


DAMAGES = {
    "an undo with rows that are not finite": lambda m, t: t.update(
        {"project.retired_samples": np.full((1, 12), np.nan, np.float32)}
    ),
    "an undo with a label of another kind": lambda m, t: m["project"]["history"][1]["undo"]["shelves"].append(
        [7, None]
    ),
    "an undo with a label that is none": lambda m, t: m["project"]["history"][1]["undo"]["shelves"].append(
        [True, None]
    ),
    "an undo of an empty class": lambda m, t: m["project"]["history"][1]["undo"]["shelves"].append(
        ["x", {"domain": "", "examples": [], "text": None}]
    ),
    "a label twice in an undo": lambda m, t: m["project"]["history"][1]["undo"]["shelves"].extend([["x", None]] * 2),
    "a memo that is no object": lambda m, t: m["project"]["history"][1]["undo"].update(memo=[["a", 1]]),
    "a version below zero": lambda m, t: m["project"].update(version=-1),
    "history is no list": lambda m, t: m["project"].update(history=3),
    "an entry without a hash": lambda m, t: m["project"]["history"][0].pop("after"),
    "an undo beyond the pool": lambda m, t: m["project"]["history"][1]["undo"]["shelves"].append(
        ["x", {"domain": "", "examples": [10**6], "text": None}]
    ),
    "an undo below the pool": lambda m, t: m["project"]["history"][1]["undo"]["shelves"].append(
        ["x", {"domain": "", "examples": [-1], "text": None}]
    ),
    "the encoder's name is a number": lambda m, t: m["project"].update(encoder_name=1),
    "keys too short": lambda m, t: t.update({"project.keys": t["project.keys"][:, :5]}),
    "a key too few": lambda m, t: t.update({"project.keys": t["project.keys"][1:]}),
    "names that overlap": lambda m, t: t.update({"project.name_ends": t["project.name_ends"][::-1].copy()}),
    "thumbnails cut off": lambda m, t: t.update({"project.thumbnails": t["project.thumbnails"][:-1]}),
    "no ends": lambda m, t: t.pop("project.thumbnail_ends"),
    "retired rows of another width": lambda m, t: t.update({"project.retired_samples": np.ones((1, 3), np.float32)}),
    "project is a list": lambda m, t: m.update(project=[]),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_project_is_refused(tmp_path, damage):
    pets_and_cars(tmp_path / "p.hycal")
    content = model_file.read(tmp_path / "p.hycal")
    manifest, tensors = dict(content.manifest), dict(content.tensors)
    damage(manifest, tensors)
    model_file.write(tmp_path / "bad.hycal", model_file.Content(manifest, tensors))
    with pytest.raises(ModelFileError, match="malformed"):
        Project(tmp_path / "bad.hycal")


@pytest.mark.parametrize("path", [".", "/", ""])
def test_a_path_without_a_name_is_no_model(path):
    state = empty_state(SPACE, has_text=False)
    for opened in (lambda: Project(path), lambda: Project(path, state), lambda: Project.create(path, state)):
        with pytest.raises(ModelFileError, match="is a folder; expected the name of a model's file"):
            opened()
