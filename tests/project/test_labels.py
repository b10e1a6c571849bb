"""Lookup by name, and the names that people may give."""

from __future__ import annotations

import pytest

from hycal import NCM, HyCalError
from hycal.project import Project
from hycal.project.inputs import known_label
from hycal.project.labels import look_alikes
from tests.support.commands import run_hycal
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
    with pytest.raises(HyCalError, match=r"is not a class|cannot be a name|characters"):
        project.rename("pets/dog", new)
    with pytest.raises(HyCalError, match=r"is not a class|characters"):
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


COMPOSED, APART = "caf\xe9/cr\xe8me", "cafe\u0301/cre\u0300me"


def test_one_name_in_two_forms_is_one_class(tmp_path):
    project = new_project(tmp_path / "p.hycal")
    project.learn([*arrivals(APART, 1), *arrivals(COMPOSED, 2)])
    project.learn(arrivals(APART, 3))
    project.correct(example("pets/cat", 1), APART)
    assert project.state.labels == (COMPOSED,) and len(project.state.examples) == 4
    assert known_label(project.state, APART) == known_label(project.state, "cre\u0300me") == COMPOSED
    for name in (APART, "cre\u0300me", "cafe\u0301/"):
        assert project.forget(name).images == {COMPOSED: 4}
        project.undo()
    project.learn(arrivals("pets/dog", 1))
    with pytest.raises(HyCalError, match="exists already"):
        project.rename("pets/dog", APART)
    project.rename("pets/dog", "pets/sa\u0308u")
    assert project.state.labels == (COMPOSED, "pets/s\xe4u")


def test_texts_and_merged_classes_follow_the_name(tmp_path):
    mine = new_project(tmp_path / "mine.hycal", method="NCM")
    mine.learn(arrivals(COMPOSED, 7), {APART: example("text", 1).row})
    assert mine.state.classes[COMPOSED].text is not None
    mine.merge(old_file(tmp_path, APART, "cars/kombi\u0302").state)
    assert mine.state.labels == (COMPOSED, "cars/komb\xee") and len(mine.state.examples) == 3


def old_file(folder, *labels):
    """A file that was written before names were compared in one form."""
    rows = [example(label, 1).row for label in labels]
    NCM().fit(rows, list(labels)).save(folder / "old.hycal")
    return Project(folder / "old.hycal")


def test_a_file_with_both_forms_opens_and_says_so(tmp_path):
    project = old_file(tmp_path, COMPOSED, APART)
    assert look_alikes(project.state) == [[APART, COMPOSED]]
    for label in (COMPOSED, APART):
        assert known_label(project.state, label) == label
    assert look_alikes(pets_and_cars(tmp_path / "p.hycal").state) == []
    for command in ("classes", "info"):
        assert "look the same" in run_hycal(command, project.path).stderr
