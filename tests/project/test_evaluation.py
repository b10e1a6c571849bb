"""Advice, evaluation and comparison, on real embeddings where it matters."""

from __future__ import annotations

import numpy as np
import pytest

from hycal.data import load_xd8
from hycal.errors import HyCalError
from hycal.project import Arrival, Example, Space, changes, empty_state
from hycal.project.advice import advise
from hycal.project.diff import ClassChange, compare
from hycal.project.evaluation import evaluate
from hycal.validation import unit_rows
from tests.support.projects import arrivals, example, new_project, pets_and_cars

WRONG = 6


@pytest.fixture(scope="module")
def satellite():
    """A model of real satellite images with some wrong labels, their names, and what the test images say."""
    domain = load_xd8()["satellite"]
    rng = np.random.default_rng(1)
    wrong = set(rng.choice(len(domain.train_y), WRONG, replace=False).tolist())
    learned = []
    for number, (row, truth) in enumerate(zip(unit_rows(domain.train_x), domain.train_y, strict=True)):
        label = (truth + 1 + number % 5) % len(domain.class_names) if number in wrong else truth
        learned.append(Arrival(f"satellite/{domain.class_names[label]}", Example(row, name=f"{number}.jpg")))
    state, _ = changes.learn(empty_state(Space("clip", None, 512), has_text=False), learned)
    answers = state.classifier.predict(domain.test_x)
    truths = [f"satellite/{domain.class_names[y]}" for y in domain.test_y]
    return state, {f"{number}.jpg" for number in wrong}, list(zip(truths, answers.tolist(), strict=True))


def test_wrong_labels_are_found(satellite):
    state, wrong, _ = satellite
    suspects = [suspect.example.name for suspect in advise(state).suspects]
    assert len(wrong.intersection(suspects)) >= WRONG - 1
    assert len(wrong.intersection(suspects[: 2 * WRONG])) >= WRONG - 2
    assert len(suspects) < 0.1 * len(state.examples)


def test_the_estimate_is_near_the_test(satellite):
    state, _, pairs = satellite
    tested = evaluate(state, pairs)
    assert abs(advise(state).overall.accuracy - tested.overall.accuracy) < 0.05
    assert tested.overall.total == len(pairs) == sum(score.total for score in tested.by_class.values())
    assert sum(item.count for item in tested.confusions) == tested.overall.total - tested.overall.right
    assert tested.by_domain == {"satellite": tested.overall}


def test_advice_for_each_class(tmp_path):
    project = new_project(tmp_path / "p.hycal")
    with pytest.raises(HyCalError, match="two classes"):
        advise(project.state)
    # Two classes that are one in truth, a clear one, one of few images, one of a single image.
    same = [Arrival(f"a/{'left' if n % 2 else 'right'}", example("a/same", n)) for n in range(16)]
    few = [*arrivals("a/few", 1, 2), *arrivals("a/one", 1)]
    project.learn([*same, *arrivals("a/clear", *range(8)), *few])
    advice = advise(project.state)
    found = {item.label: item for item in advice.classes}
    assert found["a/one"].shots == 1 and found["a/one"].left_out.total == 0 and advice.overall.total == 26
    assert "a/one" not in {item.truth for item in advice.confusions}
    assert found["a/clear"].advice.startswith("good so far") and found["a/clear"].left_out.accuracy == 1
    assert found["a/left"].advice.startswith("hard to tell from a/right") and found["a/left"].taken_for == "a/right"
    assert "merge the two classes" in found["a/left"].advice
    assert advice.estimate.low < advice.estimate.accuracy < advice.estimate.high
    assert found["a/few"].advice == "few images: add 3 or more, then ask again"
    assert found["a/one"].advice == "one image cannot be judged: add some"


def test_enough_images_are_said_only_if_the_lower_end_says_so(tmp_path):
    project = new_project(tmp_path / "p.hycal")
    project.learn([*arrivals("a/many", *range(120)), *arrivals("a/some", *range(10))])
    many, some = advise(project.state).classes
    assert many.estimate.accuracy == some.estimate.accuracy == 1.0
    assert many.advice == "enough images" and many.estimate.low >= 0.9
    assert some.advice == "good so far; more images would show whether it stays above 90%" and some.estimate.low < 0.9


def test_near_duplicates_are_named_and_count_once(tmp_path):
    project = new_project(tmp_path / "p.hycal")
    originals = [*arrivals("a/one", *range(4)), *arrivals("a/two", *range(4))]
    copies = [
        Arrival(item.label, Example(unit_rows(item.example.row[None] * 1.0001)[0], name=f"copy of {item.example.name}"))
        for item in originals[:2]
    ]
    project.learn([*originals, *copies])
    advice = advise(project.state)
    one, two = advice.classes
    assert (one.shots, one.distinct, two.shots, two.distinct) == (6, 4, 4, 4)
    assert one.advice == "few images that differ: add 1 or more, then ask again"
    assert advice.overall.total == 10 and advice.estimate.total == 8
    assert [(group.label, len(group.examples)) for group in advice.duplicates] == [("a/one", 2)] * 2


def test_no_class_can_be_judged(tmp_path):
    project = new_project(tmp_path / "p.hycal")
    project.learn([*arrivals("a/one", 1), *arrivals("a/two", 1)])
    advice = advise(project.state)
    assert advice.overall.total == 0 and not advice.confusions and not advice.suspects


def test_accuracy_by_shots(tmp_path):
    state = pets_and_cars(tmp_path / "p.hycal").state
    pairs = [("pets/cat", "pets/cat"), ("pets/cat", "cars/cat"), ("cars/mini", "cars/mini"), ("pets/dog", "pets/dog")]
    found = evaluate(state, pairs)
    assert {name: (score.right, score.total) for name, score in found.by_shots.items()} == {"2-4": (3, 4)}
    assert found.shots == {"pets/cat": 3, "cars/mini": 4, "pets/dog": 2}
    assert [(item.truth, item.answer, item.count) for item in found.confusions] == [("pets/cat", "cars/cat", 1)]


def test_two_models_compared(tmp_path):
    one, other = pets_and_cars(tmp_path / "a.hycal"), pets_and_cars(tmp_path / "b.hycal")
    assert compare(one.state, other.state).equal
    one.forget("cars/cat")
    other.learn([*arrivals("pets/dog", 3, 4), *arrivals("pets/cow", 1)])
    one.forget(example("pets/dog", 1).key)
    found = compare(one.state, other.state)
    assert found.only_first == {} and found.only_second == {"cars/cat": 2, "pets/cow": 1}
    assert found.changed == {"pets/dog": ClassChange(0, 3, 1)} and found.same == 2 and not found.settings
    ncm = new_project(tmp_path / "c.hycal", method="NCM")
    settings = compare(one.state, ncm.state).settings
    assert settings["method"] == ("HyCal", "NCM") and settings["alpha"] == ("10", "")
