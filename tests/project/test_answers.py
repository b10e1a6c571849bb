"""Answers: the map of the classes is the plane of their means, and equal models have equal maps."""

from __future__ import annotations

import numpy as np

from hycal.project import Project
from hycal.project.answers import class_map
from tests.support.projects import example, new_project, pets_and_cars


def points_of(project: Project) -> np.ndarray:
    return np.array(list(class_map(project.state).values())).reshape(-1, 2)


def test_the_map_is_the_same_for_equal_models_and_keeps_distances(tmp_path):
    project = pets_and_cars(tmp_path / "m.hycal")
    points = points_of(project)
    assert points.shape == (4, 2)
    assert np.abs(points).max() == 1.0
    assert np.abs(points.mean(axis=0)).max() < 1e-12
    assert np.array_equal(points, points_of(Project(project.path)))
    means = np.stack([project.state.classes[label].rows.mean(axis=0, dtype=float) for label in project.state.labels])
    full = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
    plane = full[0][:, :2] * full[1][:2]
    scale = np.abs(plane).max()
    assert np.allclose(np.abs(points), np.abs(plane) / scale)


def test_maps_of_few_classes(tmp_path):
    project = new_project(tmp_path / "few.hycal")
    assert class_map(project.state) == {}
    project.correct(example("pets/cat", 1), "pets/cat")
    assert class_map(project.state) == {"pets/cat": (0.0, 0.0)}
    project.correct(example("pets/dog", 1), "pets/dog")
    assert np.allclose(np.abs(points_of(project)), [[1, 0], [1, 0]], atol=1e-6)
