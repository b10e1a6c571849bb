"""Views of a project: adding and dropping are exact changes, with history, undo and one file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hycal import HierarchicalHyCal, HyCalError, load
from hycal.errors import ModelFileError, MovedOnError
from hycal.project import Arrival, Example, Project, Space, empty_state
from hycal.project.advice import advise
from hycal.project.answers import answer
from hycal.project.diff import compare
from hycal.project.sealed import describe, exposed_classes, merge, seal
from hycal.project.views import images_without, views_of
from tests.support.projects import (
    OPERATIONS,
    SPACE,
    apply,
    arrivals,
    assert_same,
    change_view,
    example,
    new_project,
    pets_and_cars,
    view_rows,
)

# No view is 5 wide: of products of five float32 numbers, OpenBLAS 0.3.31 warns of invalid values that it does not use.
AUX, ZOOM = Space("aux", "space-0", 7), Space("zoom", "space-1", 6)
METHOD = {"method": "HierarchicalHyCal"}


@pytest.fixture
def project(tmp_path):
    return pets_and_cars(tmp_path / "p.hycal", **METHOD)


def all_rows(state, part: Space) -> dict[bytes, np.ndarray]:
    rows = {e.key: np.random.default_rng(list(e.key)).normal(size=part.dimension) for e in state.examples}
    return {key: (row / np.linalg.norm(row)).astype(np.float32) for key, row in rows.items()}


def saved(project: Project, path) -> bytes:
    """The bytes of the model in the file of a project, without what only a project has."""
    load(project.path).save(path)
    return path.read_bytes()


def test_a_view_stands_in_the_order_of_names_and_the_others_are_as_they_were(project):
    before = project.state
    receipt = project.add_view(AUX, rows := all_rows(before, AUX))
    state = project.state
    assert state.space == Space("aux+tiny", "space-0+tiny-space", 19, (7, 12))
    assert state.classifier.views == (7, 12) and state.classifier.encoder_ == "space-0+tiny-space"
    for one in before.examples:
        wide = next(e.row for e in state.examples if e.key == one.key)
        np.testing.assert_array_equal(wide, np.concatenate([rows[one.key], one.row]))
    assert (receipt.action, receipt.what) == ("view", "aux added to 11 images of 4 classes")
    assert sum(receipt.images.values()) == 11 and state.history[-1].title.startswith("change of views: aux added")
    project.add_view(ZOOM, all_rows(state, ZOOM))
    assert project.state.space.name == "aux+tiny+zoom" and project.state.classifier.views == (7, 12, 6)


@pytest.mark.parametrize("dropped", ["aux", "zoom"])
def test_a_dropped_view_was_never_there_to_the_byte(tmp_path, project, dropped):
    plain = saved(project, tmp_path / "plain")
    before = project.state.hash
    project.add_view(AUX, all_rows(project.state, AUX))
    project.learn(
        [
            Arrival("pets/dog", replace(e, row=project.state.space.widened(e.row[None], "tiny")[0]))
            for e in [example("pets/dog", 9)]
        ]
    )
    assert project.drop_view("AUX").after == project.state.hash != before
    other = pets_and_cars(tmp_path / "other.hycal", **METHOD)
    other.learn(arrivals("pets/dog", 9))
    assert project.state.hash == other.state.hash and project.state.space == SPACE
    assert project.state.classifier.views is None
    assert saved(project, tmp_path / "a") == saved(other, tmp_path / "b") != plain
    assert compare(project.state, other.state).equal
    rows = np.stack([e.row for e in other.state.examples])
    ours, theirs = (one.state.classifier.refresh().decision_function(rows) for one in (project, other))
    np.testing.assert_array_equal(ours, theirs)
    for part in (ZOOM, AUX):  # added in any order, dropped in any order
        project.add_view(part, all_rows(project.state, part))
    project.drop_view(dropped)
    rest = ZOOM if dropped == "aux" else AUX
    other.add_view(rest, all_rows(other.state, rest))
    assert saved(project, tmp_path / "a") == saved(other, tmp_path / "b")


def test_undo_and_redo_are_exact_and_survive_the_file(project):
    hashes = [project.state.hash]
    hashes += [project.add_view(part, view_rows(project.state, part.dimension)).after for part in (AUX, ZOOM)]
    hashes.append(project.drop_view("aux").after)
    states = [project.state]
    for expected in reversed(hashes[:-1]):
        project = Project(project.path)
        assert project.undo().after == expected == project.state.hash
        states.append(project.state)
    assert project.state.space == SPACE and project.state.classifier.views is None
    for state in reversed(states[:-1]):
        project = Project(project.path)
        project.redo()
        assert_same(project.state, state)
        assert project.state.space == state.space
        assert project.state.classifier.encoder_ == state.space.fingerprint


@given(OPERATIONS, st.integers(0, 3))
@settings(max_examples=30)
def test_any_changes_with_views_are_undone_one_by_one(tmp_path_factory, operations, kind):
    project = pets_and_cars(tmp_path_factory.mktemp("views") / "p.hycal", **METHOD)
    hashes = [project.state.hash]
    change_view(project, kind)
    for action, number, choice in operations:
        if action in ("undo", "redo"):
            continue
        try:
            apply(project, action, number, choice)
        except HyCalError:
            assert Project(project.path).state.hash == project.state.hash
    entries = [entry for entry in project.state.history if entry.undoable and entry.number > 2]
    assert_same(Project(project.path).state, project.state)
    for entry in reversed(entries):
        project = Project(project.path)
        assert project.undo().after == entry.before == Project(project.path).state.hash
    assert project.state.hash == hashes[0] and project.state.space == SPACE


def test_images_without_the_view_are_counted_and_can_get_it_later(project):
    rows = all_rows(project.state, AUX)
    some = dict(list(rows.items())[:4])
    project.add_view(AUX, some)
    aux, tiny = views_of(project.state)
    assert (aux.space, aux.lacking, tiny.lacking) == (AUX, 7, 0)
    assert set(aux.weights) == {"cars", "pets"} == set(tiny.weights)
    lacking = images_without(project.state, AUX)
    assert lacking.keys() == rows.keys() - some.keys()
    receipt = project.add_view(AUX, rows)
    assert sum(receipt.images.values()) == 7 and not images_without(project.state, AUX)
    assert views_of(project.state)[0].lacking == 0
    again = project.add_view(AUX, rows)
    assert again.before == again.after and not again.change
    assert project.state.space == Space("aux+tiny", "space-0+tiny-space", 19, (7, 12))


def test_questions_and_classes_that_lack_a_view_are_answered_from_the_others(project):
    state = project.state
    cats = {e.key for e in state.classes["pets/cat"].examples}
    project.add_view(AUX, {key: row for key, row in all_rows(state, AUX).items() if key not in cats})
    space, wide = project.state.space, project.state
    queries = np.stack([e.row for e in state.examples])
    found = answer(wide, space.widened(queries, "tiny"), top=1, why=True)
    own = [state.label_of[e.key] for e in state.examples]
    right = np.mean([one[0].label == label for one, label in zip(found, own, strict=True)])
    assert right > 0.8
    nearest = found[0][0].evidence.nearest[0]
    assert nearest.similarity == pytest.approx(1.0, abs=1e-5)  # the mean over the views that both have
    names = {part.name for part in found[0][0].evidence.parts}
    assert names == {"aux", "tiny", "domain"}


def test_without_an_image_nothing_is_changed_and_what_cannot_have_views_says_so(tmp_path, project):
    before = project.path.read_bytes()
    assert project.add_view(AUX, {b"x" * 32: np.ones(7, np.float32)}).change == ""
    with pytest.raises(HyCalError, match=r"no view 'aux'; it has tiny\."):
        project.drop_view("aux")
    with pytest.raises(HyCalError, match=r"tiny cannot be dropped: the model has one view, tiny"):
        project.drop_view("tiny")
    with pytest.raises(HyCalError, match="Their embeddings cannot be compared"):
        project.add_view(Space("tiny", "another-space", 12), {})
    assert project.path.read_bytes() == before
    one_view = pets_and_cars(tmp_path / "one.hycal", method="RanPAC")
    with pytest.raises(HyCalError, match=r"RanPAC takes embeddings of one encoder.*HierarchicalHyCal"):
        one_view.add_view(AUX, all_rows(one_view.state, AUX))
    with pytest.raises(HyCalError, match="learned nothing yet"):
        new_project(tmp_path / "new.hycal", **METHOD).add_view(AUX, {})
    project.add_view(AUX, all_rows(project.state, AUX))
    with pytest.raises(HyCalError, match="RanPAC takes embeddings of one encoder"):
        project.change_method("RanPAC")
    with pytest.raises(HyCalError, match="has no view 'zoom'; it has aux and tiny"):
        project.drop_view("zoom")


def test_a_view_that_some_images_have_alone_is_not_dropped(project):
    project.add_view(AUX, all_rows(project.state, AUX))
    row = np.zeros(19, np.float32)
    row[0] = 1.0
    project.learn([Arrival("pets/dog", Example(row, b"k" * 32))])
    with pytest.raises(HyCalError, match=r"1 learned images have the view aux alone.*Add tiny to them first"):
        project.drop_view("aux")


def sealed_project(project, path) -> Project:
    project.add_view(AUX, view_rows(project.state, AUX.dimension))
    return Project.create(path, seal(project.state))


def test_a_sealed_project_has_its_views_with_weights_and_counts(project, tmp_path):
    sealed = sealed_project(project, tmp_path / "sealed.hycal")
    opened, found = (views_of(one.state) for one in (project, sealed))
    assert [(view.space, view.lacking, view.texts) for view in found] == [
        (view.space, view.lacking, view.texts) for view in opened
    ]
    assert opened[0].lacking > 0 and found[0].weights.keys() == {"cars", "pets"}
    assert "in each of 2 views" in describe(sealed.state)
    assert Project(sealed.path).state.hash == sealed.state.hash != project.state.hash


def test_classes_of_one_image_in_a_view_are_exposed_by_that_view(project):
    rows = {e.key: np.eye(1, 7, dtype=np.float32)[0] for e in project.state.classes["pets/cat"].examples[:1]}
    project.add_view(AUX, rows)
    records = seal(project.state).classifier.records_
    assert records.by_label["pets/cat"].count == 3
    alone = [[] if own is None else exposed_classes(own) for own in records.views]
    assert exposed_classes(records) == sorted({label for own in alone for label in own})
    assert [own for own in alone if own == ["pets/cat"]], "one view exposes the class of one image alone"


def test_a_sealed_project_changes_and_survives_its_file(project, tmp_path):
    sealed = sealed_project(project, tmp_path / "sealed.hycal")
    space = sealed.state.space
    new = [
        Arrival(label, replace(one.example, row=space.widened(one.example.row[None], "tiny")[0]))
        for label in ("pets/dog", "birds/owl")
        for one in arrivals(label, 7, 8)
    ]
    sealed.learn(new)
    sealed.rename("cars", "vehicles")
    sealed.forget("pets/cat")
    state = Project(sealed.path).state
    assert state.hash == sealed.state.hash == sealed.state.history[-1].after
    assert state.labels == ("birds/owl", "pets/dog", "vehicles/cat", "vehicles/mini")
    assert [state.classes[label].count for label in state.labels] == [2, 4, 2, 4]
    assert set(views_of(state)[0].weights) == {"birds", "pets", "vehicles"}
    rows = np.stack([one.example.row for one in new])
    assert [one[0].label for one in answer(state, rows, top=1)] == [one.label for one in new]
    both = Project.create(tmp_path / "both.hycal", merge(state, project.state)[0])
    assert Project(both.path).state.classes["pets/dog"].count == 6


def test_a_sealed_project_gets_and_loses_no_view(project, tmp_path):
    sealed = sealed_project(project, tmp_path / "sealed.hycal")
    before = sealed.path.read_bytes()
    with pytest.raises(HyCalError, match=r"cannot lose a view: its weights and its calibration were fitted to images"):
        sealed.drop_view("aux")
    with pytest.raises(HyCalError, match=r"cannot get a view: it has no images"):
        sealed.add_view(ZOOM, {})
    assert sealed.path.read_bytes() == before


@pytest.mark.parametrize(
    "row", [np.zeros(19), np.r_[np.ones(7), np.zeros(12)], np.r_[np.full(7, np.nan), np.zeros(12)]]
)
def test_a_row_must_have_unit_views(project, row):
    project.add_view(AUX, all_rows(project.state, AUX))
    with pytest.raises(HyCalError, match="unit vectors of \\(7, 12\\) side by side or zeros"):
        project.learn([Arrival("pets/dog", Example(row.astype(np.float32), b"k" * 32))])


def test_thumbnails_that_both_spaces_have_are_stored_once(project):
    before = project.path.stat().st_size
    thumbnails = sum(len(e.thumbnail) for e in project.state.examples)
    project.add_view(AUX, all_rows(project.state, AUX))
    again = Project(project.path)
    content = project.path.read_bytes()
    assert content.count(project.state.examples[0].thumbnail) == 1 and thumbnails and before
    assert_same(again.state, project.state)
    again.undo()
    assert all(e.thumbnail for e in again.state.examples)


def test_texts_stay_with_the_view_that_has_them(tmp_path):
    clip = Space("clip", "clip-space", 12)
    names = ("pets/cat", "pets/dog", "cars/mini", "cars/cat")
    texts = dict(zip(names, np.eye(4, 12, dtype=np.float32), strict=True))
    images = [
        *arrivals("pets/cat", 1, 2),
        *arrivals("pets/dog", 1, 2),
        *arrivals("cars/mini", 1, 2),
        *arrivals("cars/cat", 1, 2),
    ]
    first = Project(tmp_path / "clip.hycal", empty_state(clip, has_text=True, method="HierarchicalHyCal"))
    first.learn(images, texts)
    alone = first.state.hash
    first.add_view(AUX, all_rows(first.state, AUX))
    for label, class_ in first.state.classes.items():
        np.testing.assert_array_equal(class_.text, np.r_[np.zeros(7, np.float32), texts[label]])
    assert [view.texts for view in views_of(first.state)] == [0, 4]
    # the other way round: the view with the text tower comes second
    second = Project(tmp_path / "aux.hycal", empty_state(AUX, has_text=False, method="HierarchicalHyCal"))
    rows = all_rows(first.state, AUX)
    second.learn([Arrival(one.label, replace(one.example, row=rows[one.example.key])) for one in images])
    bare = second.state.hash
    second.add_view(clip, {one.example.key: one.example.row for one in images}, texts)
    assert second.state.hash == first.state.hash
    assert first.drop_view("aux").after == alone
    assert second.drop_view("clip").after == bare
    assert all(class_.text is None for class_ in second.state.classes.values())


def test_another_process_that_has_the_model_open_refuses_the_changed_one(project):
    other = Project(project.path)
    project.add_view(AUX, all_rows(project.state, AUX))
    with pytest.raises(MovedOnError, match="holds another model now"):
        other.refresh()
    project.undo()
    assert Project(project.path).state.space == SPACE


@pytest.mark.parametrize("damage", ["widths", "rows", "owners", "space"])
def test_damaged_undo_data_of_another_width_is_refused(project, damage):
    from hycal.project.file import project_content, state_of
    from hycal.storage.model_file import Content

    project.add_view(AUX, all_rows(project.state, AUX))
    content = project_content(project.state)
    tensors, manifest = dict(content.tensors), content.manifest
    if damage == "widths":
        tensors["project.retired_samples.widths"] = tensors["project.retired_samples.widths"] * 100
    elif damage == "rows":
        tensors["project.retired_samples"] = tensors["project.retired_samples"] * np.float32(np.nan)
    elif damage == "owners":
        tensors["project.thumbnail_owners"] = tensors["project.thumbnail_owners"] + 1000
    else:
        manifest["project"]["history"][-1]["undo"]["space"] = ["tiny", 7, "wide"]
    with pytest.raises(ModelFileError, match="malformed"):
        state_of(Content(manifest, tensors))


def test_a_model_with_views_is_one_of_the_library(project):
    project.add_view(AUX, all_rows(project.state, AUX))
    plain = load(project.path)
    rows = np.stack([e.row for e in project.state.examples])
    own = [project.state.label_of[e.key] for e in project.state.examples]
    domains = [label.split("/")[0] for label in own]
    reference = HierarchicalHyCal(views=(7, 12))
    for domain in sorted(set(domains)):
        chosen = [row for row, name in enumerate(domains) if name == domain]
        reference.partial_fit(rows[chosen], [own[row] for row in chosen], domain=domain)
    assert plain.views == (7, 12)
    np.testing.assert_allclose(plain.decision_function(rows), reference.decision_function(rows), rtol=1e-5, atol=1e-5)


def test_the_card_of_a_model_with_views_has_its_accuracy(tmp_path):
    from hycal.hub.card import CardFacts, judge, model_card

    project = pets_and_cars(tmp_path / "p.hycal", method="NCM")
    rows = all_rows(project.state, AUX)  # noise, which the weights of views leave out; the cosine of all rows does not
    project.add_view(AUX, rows)
    judged, expected = judge(project.state), advise(project.state)
    assert judged is not None and expected is not None
    assert judged.estimate() == expected.estimate
    assert "learned images, each held out in turn" in model_card(project.state, CardFacts("pets", judged=judged))


def _half_of_the_classes(undo, tensors):
    undo["shelves"] = undo["shelves"][:1]


def _rows_of_other_lengths(undo, tensors):
    tensors["project.retired_samples"] *= np.float32(5.0)


def _another_width(undo, tensors):
    undo["space"] = ["tiny", "tiny-space", 99]


def _rows_of_two_widths(undo, tensors):
    tensors["project.retired_samples.widths"][0] = 2


def _views_of_no_space(undo, tensors):
    undo["method"][1]["views"] = [5, 7]


@pytest.mark.parametrize(
    "forge", [_half_of_the_classes, _rows_of_other_lengths, _another_width, _rows_of_two_widths, _views_of_no_space]
)
def test_forged_undo_data_changes_nothing(project, forge):
    """Whoever forges a file can also forge its hashes, so these do not protect it."""
    from hycal.project import reversals
    from hycal.project.file import project_content, state_of
    from hycal.storage.model_file import Content

    project.add_view(AUX, all_rows(project.state, AUX))
    content = project_content(project.state)
    tensors = {name: array.copy() for name, array in content.tensors.items()}
    forge(content.manifest["project"]["history"][-1]["undo"], tensors)
    state = state_of(Content(content.manifest, tensors))
    with pytest.raises(ModelFileError, match="undo data"):
        reversals.undo(state)
