"""The same images learned with another method, and the leave-one-out accuracy of each method."""

from __future__ import annotations

import numpy as np
import pytest

from hycal.classifiers import METHODS
from hycal.data import load_xd8
from hycal.errors import HyCalError, MovedOnError
from hycal.project import Arrival, Example, Project, Space, changes, empty_state
from hycal.project.methods import Trial, better_method, remake, trials
from hycal.uncertainty.cross_validation import CrossValidation, cross_validate
from hycal.validation import unit_rows
from tests.support.projects import SPACE, WIDTH, arrivals, new_project, pets_and_cars

NEED_TEXT = {name for name, method in METHODS.items() if method.without_text is None}
LEARNED = [*arrivals("pets/cat", 1, 2, 3), *arrivals("pets/dog", 1, 2), *arrivals("cars/mini", 1, 2, 3, 4)]
TEXTS = dict(zip(("pets/cat", "pets/dog", "cars/mini"), np.eye(3, WIDTH, dtype=np.float32), strict=True))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("texts", [None, TEXTS], ids=["images", "texts"])
def test_it_is_the_model_that_learned_with_the_method(method, texts):
    def learned(with_method):
        return changes.learn(empty_state(SPACE, has_text=texts is not None, method=with_method), LEARNED, texts)[0]

    state = learned("NCM")
    if method in NEED_TEXT and texts is None:
        with pytest.raises(HyCalError, match="needs a text embedding"):
            remake(state, method)
        return
    other, receipt = remake(state, method)
    assert other.hash == learned(method).hash == receipt.after
    assert receipt.before == state.hash and sum(receipt.images.values()) == 9
    assert [example.name for example in other.examples] == [example.name for example in state.examples]


def test_it_can_be_stored_and_taken_back(tmp_path):
    project = pets_and_cars(tmp_path / "p.hycal")
    other, receipt = remake(project.state, "HierarchicalHyCal")
    stored = project.create(tmp_path / "other.hycal", other)
    assert project.create(tmp_path / "same.hycal", remake(stored.state, "HyCal")[0]).state.hash == project.state.hash
    assert stored.state.hash == receipt.after
    stored.undo()
    assert stored.state.labels == ()


@pytest.mark.parametrize("journal", [False, True], ids=["whole", "journal"])
def test_a_change_of_method_goes_on_with_the_history_and_is_undone_and_redone_to_the_byte(tmp_path, journal):
    path = tmp_path / "p.hycal"
    pets_and_cars(path, method="RanPAC")
    project = Project(path, journal=journal)
    project.learn(arrivals("pets/cat", 7))  # in the journal, which a change of method writes into the file
    before, memo = project.state.hash, project.state.memo
    receipt = project.change_method("ncm")
    assert (receipt.action, receipt.what) == ("method", "from RanPAC to NCM") and receipt.before == before
    assert receipt.after == remake(project.state, "NCM")[0].hash == Project(path).state.hash
    assert memo and not project.state.memo and project.change_method("NCM").what == "it is NCM already"
    for other in (project, Project(path, journal=journal)):  # as it is here, and as the file has it
        assert other.undo().what.endswith("method: from RanPAC to NCM")
        assert (other.state.hash, other.state.memo) == (before, memo) and Project(path).state.hash == before
        assert type(other.state.classifier).__name__ == "RanPAC" and other.state.classifier.encoder_ == "tiny-space"
        assert other.state.history[-1].title == "change of method from RanPAC to NCM"
        assert other.redo().after == receipt.after == Project(path).state.hash
    project.undo()
    project.undo()
    assert project.state.n_images == 11


def test_a_program_that_has_the_model_open_follows_the_change_of_method(tmp_path):
    pets_and_cars(tmp_path / "p.hycal")
    one, other = Project(tmp_path / "p.hycal"), Project(tmp_path / "p.hycal")
    receipt = other.change_method("SLDA")
    assert one.refresh().hash == receipt.after and one.learn(arrivals("pets/cat", 9)).before == receipt.after


def test_a_method_that_lacks_texts_is_refused_and_nothing_changes(tmp_path):
    project = pets_and_cars(tmp_path / "p.hycal")
    before = (tmp_path / "p.hycal").read_bytes()
    with pytest.raises(HyCalError, match="needs a text embedding"):
        project.change_method("ZeroShot")
    with pytest.raises(HyCalError, match="There is no method 'forest'"):
        project.change_method("forest")
    with pytest.raises(HyCalError, match="its method cannot be changed"):
        new_project(tmp_path / "empty.hycal").change_method("NCM")
    assert (tmp_path / "p.hycal").read_bytes() == before


def test_an_empty_project_starts_from_another_encoder_and_one_that_learned_does_not(tmp_path):
    project, other = new_project(tmp_path / "p.hycal"), empty_state(Space("wide", "wide-space", 99), has_text=False)
    project.start_from(other)
    assert project.state is other
    learned = pets_and_cars(tmp_path / "learned.hycal")
    with pytest.raises(MovedOnError, match="learned something already"):
        learned.start_from(other)
    assert learned.refresh().space == SPACE


def test_trials_judge_images_that_the_model_never_saw():
    domain = load_xd8()["flower"]
    learned = [
        Arrival(f"flower/{domain.class_names[label]}", Example(row, name=str(number)))
        for number, (row, label) in enumerate(zip(unit_rows(domain.train_x), domain.train_y, strict=True))
        if label < 20 and number % 3 == 0
    ]
    state, _ = changes.learn(empty_state(Space("clip", None, 512), has_text=False), learned)
    names = ["NCM", "ZeroShot", "HierarchicalHyCal"]
    found = {trial.method: trial for trial in trials(state, names)}
    assert list(found) == names and "needs a text embedding" in found["ZeroShot"].problem
    for name in ("NCM", "HierarchicalHyCal"):
        classifier = remake(state, name)[0].classifier
        hits = cross_validate(classifier, classifier.records_).hits
        score = found[name].left_out
        assert (score.right, score.total) == (hits.sum(), len(hits))


@pytest.mark.parametrize("learned", [arrivals("a/one", 1, 2), [*arrivals("a/one", 1), *arrivals("a/two", 1)]])
def test_nothing_can_be_left_out(tmp_path, learned):
    project = new_project(tmp_path / "p.hycal")
    project.learn(learned)
    with pytest.raises(HyCalError, match="two classes at least"):
        next(trials(project.state, METHODS))


def trial(method, right, seconds, total=40):
    """A method that is right on the first `right` of `total` images."""
    each = np.arange(total)
    return Trial(method, CrossValidation(each, np.zeros(total, int), (each >= right) * 1, each, each), seconds)


def test_a_method_is_recommended_only_if_it_is_better_beyond_chance_and_then_the_cheapest_of_equals():
    own = trial("own", 30, 1.0)
    assert better_method([own, trial("a little better", 33, 0.1)], "own") is None
    assert better_method([own, trial("slow", 40, 9.0), trial("quick", 39, 2.0)], "own") == "quick"
    assert better_method([own, trial("slow", 40, 9.0), trial("chance", 33, 0.1)], "own") == "slow"
    assert better_method([trial("other", 40, 1.0), Trial("own", None, 0.0, "no text")], "own") is None
