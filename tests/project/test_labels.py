"""Lookup by name, and the names that people may give."""

from __future__ import annotations

import pytest

from hycal import HyCalError
from tests.support.projects import arrivals, example, new_project, pets_and_cars


def test_a_class_and_a_domain_of_one_name(tmp_path):
    project = new_project(tmp_path / "p.hycal")
    project.learn([*arrivals("pets/cat", 1, 2), *arrivals("cat/persian", 1), *arrivals("cat/siamese", 1)])
    for ask in (project.forget, project.forget_for_good, lambda name: project.rename(name, "felines")):
        with pytest.raises(HyCalError, match="Write 'cat/' for the domain, or 'pets/cat' for the class"):
            ask("cat")
    project.rename("cat/", "felines")
    assert project.state.labels == ("felines/persian", "felines/siamese", "pets/cat")
    assert project.forget("cat").images == {"pets/cat": 2}


@pytest.mark.parametrize("new", ["", " ", "dog ", "pets/", "/dog", "a\x1bb", "x" * 200])
def test_names_that_nobody_could_type_again(tmp_path, new):
    project = pets_and_cars(tmp_path / "p.hycal")
    with pytest.raises(HyCalError, match=r"is no class|is no name|characters"):
        project.rename("pets/dog", new)
    with pytest.raises(HyCalError, match=r"is no class|characters"):
        project.correct(example("pets/cow", 1), f"pets/{new}" if "/" not in new else new)


def test_the_same_name_is_no_change(tmp_path):
    project = pets_and_cars(tmp_path / "p.hycal")
    before = project.state
    receipt = project.rename("pets/dog", "dog")
    assert receipt.before == receipt.after and not receipt.undoable and project.state is before


def test_names_that_mean_nothing_or_too_much(tmp_path):
    project = pets_and_cars(tmp_path / "p.hycal")
    for name, says in (("cat", "2 domains"), ("pets/cta", "Did you mean 'pets/cat'"), ("", "no class")):
        with pytest.raises(HyCalError, match=says):
            project.forget(name)
    with pytest.raises(HyCalError, match="does not know the image"):
        project.forget(bytes(32))
    assert project.forget("dog").images == {"pets/dog": 2}
    assert project.forget("cars/mini-3.png").images == {"cars/mini": 1}
