"""The same images learned with another method, and the leave-one-out accuracy of each method."""

from __future__ import annotations

import numpy as np
import pytest

from hycal.classifiers import METHODS
from hycal.data import load_xd8
from hycal.errors import HyCalError
from hycal.project import Arrival, Example, Space, changes, empty_state
from hycal.project.methods import remake, trials
from hycal.validation import unit_rows
from tests.support.projects import SPACE, WIDTH, arrivals, new_project, pets_and_cars

NEED_TEXT = {"ZeroShot"}
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
        held_out = remake(state, name)[0].classifier.leave_one_out()
        several = held_out.samples.counts > 1
        score = found[name].left_out
        assert (score.right, score.total) == (held_out.hits[several].sum(), several.sum())
        assert score.standard_error == pytest.approx(np.std(held_out.hits[several]) / np.sqrt(several.sum()))


@pytest.mark.parametrize("learned", [arrivals("a/one", 1, 2), [*arrivals("a/one", 1), *arrivals("a/two", 1)]])
def test_nothing_can_be_left_out(tmp_path, learned):
    project = new_project(tmp_path / "p.hycal")
    project.learn(learned)
    with pytest.raises(HyCalError, match="two classes at least"):
        next(trials(project.state, METHODS))
