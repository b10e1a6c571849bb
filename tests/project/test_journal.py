"""Corrections in the journal: on the disk at once, never lost, never counted twice."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from hycal.errors import ModelFileError
from hycal.project import Project
from hycal.project.mapping import class_map
from tests.project.building import example, new_project, pets_and_cars


@pytest.fixture
def project(tmp_path):
    return pets_and_cars(tmp_path / "m.hycal")


def journal(project: Project):
    return project.path.with_name(f".{project.path.name}.journal")


def test_a_correction_at_once_is_what_correct_makes(tmp_path, project):
    other = pets_and_cars(tmp_path / "other.hycal")
    one = project.correct_at_once(example("pets/fox", 1), "pets/fox")
    two = other.correct(example("pets/fox", 1), "pets/fox")
    assert (one.before, one.after, one.images) == (two.before, two.after, two.images)


def test_whoever_opens_the_file_sees_it_and_its_history(project):
    before = project.path.read_bytes()
    project.correct_at_once(example("pets/fox", 1), "pets/fox")
    project.correct_at_once(example("pets/cat", 1), "pets/dog")
    assert project.path.read_bytes() == before
    opened = Project(project.path)
    assert opened.state.hash == project.state.hash
    assert [vars(entry) | {"undo": None} for entry in opened.state.history] == [
        vars(entry) | {"undo": None} for entry in project.state.history
    ]
    found = {e.identity: (e.name, e.thumbnail) for e in opened.state.examples}
    assert found == {e.identity: (e.name, e.thumbnail) for e in project.state.examples}
    opened.undo()
    opened.undo()
    assert opened.state.labels == ("cars/cat", "cars/mini", "pets/cat", "pets/dog")


def test_another_project_object_notices(project):
    other = Project(project.path)
    project.correct_at_once(example("pets/fox", 1), "pets/fox")
    assert other.current().hash == other.refresh().hash == project.state.hash


def test_settling_moves_it_into_the_file(project):
    project.correct_at_once(example("pets/fox", 1), "pets/fox")
    state = project.state
    project.settle()
    assert not journal(project).exists()
    assert project.state is state
    assert Project(project.path).state.hash == state.hash
    written = project.path.read_bytes()
    project.settle()
    assert project.path.read_bytes() == written


def test_any_other_change_takes_it_along(project):
    project.correct_at_once(example("pets/fox", 1), "pets/fox")
    project.forget("cars/cat")
    assert not journal(project).exists()
    assert Project(project.path).state.labels == ("cars/mini", "pets/cat", "pets/dog", "pets/fox")


def test_a_journal_that_outlived_its_file_means_nothing(project):
    project.correct_at_once(example("pets/fox", 1), "pets/fox")
    left = journal(project).read_bytes()
    project.settle()
    journal(project).write_bytes(left)  # the power went before it was removed
    opened = Project(project.path)
    assert opened.state.hash == project.state.hash
    assert len(opened.state.history) == 3
    opened.correct_at_once(example("pets/fox", 2), "pets/fox")
    assert Project(project.path).state.hash == opened.state.hash


def test_what_a_power_cut_leaves_of_the_last_record_is_no_record(project):
    project.correct_at_once(example("pets/fox", 1), "pets/fox")
    first, whole = project.state.hash, journal(project).read_bytes()
    project.correct_at_once(example("pets/fox", 2), "pets/fox")
    both = journal(project).read_bytes()
    for length in range(len(whole), len(both), 97):
        journal(project).write_bytes(both[:length])
        assert Project(project.path).state.hash == first
    garbled = bytearray(both)
    garbled[-1] ^= 1
    journal(project).write_bytes(garbled)
    opened = Project(project.path)
    assert opened.state.hash == first
    opened.correct_at_once(example("pets/owl", 1), "pets/owl")  # goes over the torn end
    assert Project(project.path).state.hash == opened.state.hash != first


def test_a_journal_of_other_corrections_is_refused(tmp_path, project):
    project.correct_at_once(example("pets/fox", 1), "pets/fox")
    content = journal(project).read_bytes()
    body = content[88:].replace(b"pets/fox", b"pets/elk")
    journal(project).write_bytes(content[:56] + hashlib.sha256(body).digest() + body)
    with pytest.raises(ModelFileError, match="does not lead to the model"):
        Project(project.path)


def test_the_first_correction_of_all_makes_the_file(tmp_path):
    project = new_project(tmp_path / "new.hycal")
    project.correct_at_once(example("pets/cat", 1), "pets/cat")
    assert project.path.is_file()
    assert not journal(project).exists()


def test_text_embeddings_of_new_classes_are_kept(project):
    text = np.eye(12, dtype=np.float32)[0]
    project.correct_at_once(example("pets/fox", 1), "pets/fox", {"pets/fox": text})
    assert np.array_equal(Project(project.path).state.shelves["pets/fox"].text, text)


def test_the_map_is_the_same_for_equal_models_and_keeps_distances(project):
    points = class_map(project.state)
    assert points.shape == (4, 2)
    assert np.abs(points).max() == 1.0
    assert np.abs(points.mean(axis=0)).max() < 1e-12
    assert np.array_equal(points, class_map(Project(project.path).state))
    means = np.stack([project.state.shelves[label].rows.mean(axis=0, dtype=float) for label in project.state.labels])
    full = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
    plane = full[0][:, :2] * full[1][:2]
    scale = np.abs(plane).max()
    assert np.allclose(np.abs(points), np.abs(plane) / scale)


def test_maps_of_few_classes(tmp_path):
    project = new_project(tmp_path / "few.hycal")
    assert class_map(project.state).shape == (0, 2)
    project.correct(example("pets/cat", 1), "pets/cat")
    assert class_map(project.state).tolist() == [[0, 0]]
    project.correct(example("pets/dog", 1), "pets/dog")
    assert np.allclose(np.abs(class_map(project.state)), [[1, 0], [1, 0]], atol=1e-6)
