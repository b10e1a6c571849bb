"""A project: learning, forgetting and undo, and a file that holds all of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from hycal import METHODS, HyCal, HyCalError, RanPAC, load
from hycal.errors import MovedOnError
from hycal.project import UNDO_DEPTH, Arrival, Example, Project
from hycal.project.file import project_content, state_of
from hycal.state.records import Records
from hycal.state.samples import ClassSamples
from hycal.storage import model_file
from tests.support.projects import OPERATIONS, SPACE, apply, arrivals, assert_same, example, new_project, pets_and_cars

GOLDEN = Path(__file__).parents[1] / "golden"


def test_a_project_file_is_a_model_file(tmp_path):
    project = pets_and_cars(tmp_path / "all.hycal")
    plain = load(tmp_path / "all.hycal")
    rows = np.stack([e.row for e in project.state.examples])
    labels = [project.state.label_of[e.identity] for e in project.state.examples]
    reference = HyCal(fusion="image").fit(rows, labels)
    assert plain.classes_.tolist() == ["cars/cat", "cars/mini", "pets/cat", "pets/dog"]
    assert plain.domains_.tolist() == ["cars", "cars", "pets", "pets"] and plain.encoder_ == SPACE.fingerprint
    np.testing.assert_array_equal(plain.class_scores(rows), reference.class_scores(rows))
    np.testing.assert_array_equal(project.state.classifier.class_scores(rows), plain.class_scores(rows))
    taught = HyCal(fusion="image")
    for domain in ("pets", "cars"):
        chosen = [row for row, label in enumerate(labels) if label.startswith(domain)]
        taught.partial_fit(rows[chosen], [labels[row] for row in chosen], domain=domain)
    taught.encoder_ = SPACE.fingerprint
    taught.save(tmp_path / "taught.safetensors")
    plain.save(tmp_path / "plain.safetensors")
    assert (tmp_path / "taught.safetensors").read_bytes() == (tmp_path / "plain.safetensors").read_bytes()


def test_everything_is_in_the_file(tmp_path):
    project = pets_and_cars(tmp_path / "all.hycal")
    again = Project(tmp_path / "all.hycal")
    assert_same(project.state, again.state)
    assert again.state.space == SPACE
    assert [(e.action, e.what, e.before, e.after) for e in again.state.history] == [
        (e.action, e.what, e.before, e.after) for e in project.state.history
    ]
    for _ in range(2):
        again.undo()
    assert not Project(tmp_path / "all.hycal").state.classes


def test_a_plain_model_is_a_project_whose_images_are_unknown(tmp_path):
    rows = np.stack([example("a/x", n).row for n in range(4)])
    HyCal(fusion="image").fit(rows, ["a/x", "a/x", "b", "b"], domain="a").save(tmp_path / "plain.safetensors")
    project = Project(tmp_path / "plain.safetensors")
    assert project.state.labels == ("a/x", "b") and {e.key for e in project.state.examples} == {b""}
    project.forget("b")
    project.undo()
    assert load(tmp_path / "plain.safetensors").counts_.tolist() == [2, 2]


def test_the_same_image_is_not_learned_twice(tmp_path):
    project = new_project(tmp_path / "p.hycal")
    first = project.learn([*arrivals("pets/cat", 1, 2), *arrivals("pets/cat", 2)])
    assert first.images == {"pets/cat": 2} and [s.reason for s in first.skipped] == ["learned already as pets/cat"]
    cat = example("pets/cat", 1)
    second = project.learn([Arrival("pets/dog", cat), *arrivals("pets/dog", 5)])
    assert second.images == {"pets/dog": 1} and "known as pets/cat" in second.skipped[0].reason
    third = project.learn(arrivals("pets/cat", 1, 2))
    assert third.before == third.after and len(project.state.history) == 2


def test_correcting_moves_an_image(tmp_path):
    project = pets_and_cars(tmp_path / "p.hycal")
    receipt = project.correct(example("pets/cat", 1), "pets/dog")
    assert project.state.label_of[example("pets/cat", 1).identity] == "pets/dog" and receipt.before != receipt.after
    assert len(project.state.classes["pets/cat"].examples) == 2
    assert project.correct(example("pets/cat", 1), "pets/dog").after == receipt.after
    project.correct(example("pets/cow", 1), "pets/cow")
    assert "pets/cow" in project.state.classes


def test_forgetting_is_exact_and_for_good_leaves_nothing(tmp_path):
    path = tmp_path / "p.hycal"
    project = pets_and_cars(path)
    never = new_project(tmp_path / "never.hycal")
    never.learn([*arrivals("pets/cat", 1, 3), *arrivals("pets/dog", 1, 2)])
    gone = example("pets/cat", 2)
    project.forget("cars")
    receipt = project.forget(gone.key)
    assert receipt.after == never.state.hash and receipt.images == {"pets/cat": 1}
    assert gone.thumbnail in path.read_bytes() and gone.row.tobytes() in path.read_bytes()
    project.undo()
    final = project.forget_for_good(gone.key.hex()[:12])
    content = path.read_bytes()
    for trace in (gone.row.tobytes(), gone.thumbnail, gone.key, gone.name.encode(), gone.key.hex().encode()):
        assert trace not in content
    assert not final.undoable and final.after == never.state.hash
    with pytest.raises(HyCalError, match="nothing to undo"):
        project.undo()


@pytest.mark.parametrize("options", [{}, {"method": "TEEN", "parameters": {"shift": 0.5}}], ids=["HyCal", "TEEN"])
def test_renaming_changes_no_answer(tmp_path, options):
    project = pets_and_cars(tmp_path / "p.hycal", **options)
    queries = np.stack([example("pets/cat", n).row for n in range(6)])
    before = dict(zip(project.state.labels, project.state.classifier.class_scores(queries).T, strict=True))
    project.rename("pets/cat", "tiger")
    project.rename("cars", "vehicles")
    names = {"pets/cat": "pets/tiger", "cars/cat": "vehicles/cat", "cars/mini": "vehicles/mini", "pets/dog": "pets/dog"}
    after = dict(zip(project.state.labels, project.state.classifier.class_scores(queries).T, strict=True))
    for old, new in names.items():
        np.testing.assert_allclose(before[old], after[new], rtol=1e-4, atol=1e-4)
    assert set(project.state.domains) == {"pets", "vehicles"}
    with pytest.raises(HyCalError, match="exists already"):
        project.rename("pets/dog", "tiger")
    with pytest.raises(HyCalError, match="slash"):
        project.rename("pets", "a/b")


def test_merging_counts_an_image_once(tmp_path):
    one, other = new_project(tmp_path / "a.hycal"), new_project(tmp_path / "b.hycal")
    one.learn(arrivals("pets/cat", 1, 2, 3))
    other.learn([*arrivals("pets/cat", 3, 4), *arrivals("pets/dog", 1)])
    both = new_project(tmp_path / "c.hycal")
    both.learn([*arrivals("pets/cat", 1, 2, 3, 4), *arrivals("pets/dog", 1)])
    receipt = one.merge(other.state)
    assert receipt.after == both.state.hash and len(receipt.skipped) == 1
    strange = new_project(tmp_path / "d.hycal", method="NCM")
    with pytest.raises(HyCalError, match="NCM"):
        strange.merge(other.state)


def test_models_learned_elsewhere_may_hold_an_image_twice(tmp_path):
    """The library counts rows; a project counts an image once, and must not lose the copies that a file brings."""
    row, other = example("a/x", 1).row, example("a/x", 2).row
    HyCal(fusion="image").fit([row, row, row, other], ["a", "a", "b", "c"]).save(tmp_path / "m.hycal")
    project = Project(tmp_path / "m.hycal")
    identity = project.state.classes["a"].examples[0].identity
    assert set(project.state.label_of.values()) == {"b", "c"}
    assert project.forget("a").images == {"a": 2}
    assert project.state.label_of[identity] == "b"
    project.undo()
    project.forget("b")
    assert project.state.label_of[identity] == "a" and project.forget(identity).images == {"a": 2}


def test_an_image_is_forgotten_for_good_in_every_class_that_has_it(tmp_path):
    row, other = example("a/x", 1).row, example("a/x", 2).row
    HyCal(fusion="image").fit([row, row, other], ["a", "b", "c"]).save(tmp_path / "m.hycal")
    project = Project(tmp_path / "m.hycal")
    assert project.forget_for_good(project.state.classes["a"].examples[0].identity).images == {"a": 1, "b": 1}
    assert row.tobytes() not in (tmp_path / "m.hycal").read_bytes() and project.state.labels == ("c",)


def test_bad_embeddings_change_nothing(tmp_path):
    project = pets_and_cars(tmp_path / "p.hycal")
    before = (tmp_path / "p.hycal").read_bytes()
    for row in (np.zeros(3, np.float32), np.zeros(12, np.float32), np.full(12, np.nan, np.float32)):
        with pytest.raises(HyCalError, match="unit float32"):
            project.learn([*arrivals("new/class", 1), Arrival("pets/cat", Example(row))])
    assert (tmp_path / "p.hycal").read_bytes() == before and "new/class" not in project.state.classes


def test_undo_has_a_depth(tmp_path):
    project = new_project(tmp_path / "p.hycal")
    for number in range(UNDO_DEPTH + 5):
        project.learn(arrivals("pets/cat", number))
    for _ in range(UNDO_DEPTH):
        project.undo()
    assert len(project.state.classes["pets/cat"].examples) == 5
    with pytest.raises(HyCalError, match="nothing to undo"):
        project.undo()


def test_an_undo_that_names_its_change_is_never_done_twice(tmp_path):
    project = new_project(tmp_path / "p.hycal")
    first, second = (project.learn(arrivals("pets/cat", number)) for number in (1, 2))
    assert [first.change, second.change] == [entry.id for entry in project.state.history]
    assert project.undo(expected=second.change).after == first.after
    before = (tmp_path / "p.hycal").read_bytes()
    with pytest.raises(MovedOnError, match=f"would take back {first.change}"):
        Project(tmp_path / "p.hycal").undo(expected=second.change)
    assert (tmp_path / "p.hycal").read_bytes() == before
    again = project.learn(arrivals("pets/cat", 2))
    assert again.after == second.after and again.change != second.change, "the same model by another change"
    with pytest.raises(MovedOnError):
        project.undo(expected=second.change)
    assert project.undo(expected=again.change).before == again.after


def test_the_memo_of_a_method_is_kept_and_taken_back(tmp_path):
    parameters = {"n_components": 32, "ridge": "first-task", "random_state": 0}
    project = new_project(tmp_path / "p.hycal", method="RanPAC", parameters=parameters)
    numbers = range(6)
    project.learn([*arrivals("pets/cat", *numbers), *arrivals("pets/dog", *numbers)])
    plain = RanPAC(**parameters)
    samples = [*arrivals("pets/cat", *numbers), *arrivals("pets/dog", *numbers)]
    plain.fit(np.stack([a.example.row for a in samples]), [a.label for a in samples], domain="pets")
    assert project.state.memo == plain.records_.memo != {}
    assert Project(tmp_path / "p.hycal").state.memo == plain.records_.memo
    project.undo()
    assert project.state.memo == {}


@pytest.mark.parametrize("method", [name for name in METHODS if name != "ZeroShot"])
def test_every_method_is_a_project(tmp_path, method):
    project = new_project(tmp_path / "p.hycal", method=method)
    try:
        project.learn([*arrivals("pets/cat", 1, 2, 3), *arrivals("pets/dog", 1, 2, 3)])
    except HyCalError as error:
        assert "text" in str(error) and not project.exists
        return
    assert project.state.classifier.predict([example("pets/cat", 9).row]).tolist() == ["pets/cat"]
    project.undo()
    assert not project.state.classes


@given(operations=OPERATIONS)
def test_undo_leads_back_through_every_state(tmp_path_factory, operations):
    """Whatever was done, undoing it all goes through the same states backwards, also after reading the file anew."""
    path = tmp_path_factory.mktemp("undo") / "p.hycal"
    project, trail = new_project(path), []
    for action, number, kind in operations:
        before = project.state
        try:
            apply(project, action, number, kind)
        except HyCalError:
            assert project.state is before
            continue
        if action == "undo":
            assert_same(project.state, trail.pop())
        elif project.state.hash != before.hash:
            trail.append(before)
    if project.exists:
        project = Project(path)
    for earlier in reversed(trail):
        project.undo()
        assert_same(project.state, earlier)


def test_paths_that_cannot_be_written(tmp_path):
    with pytest.raises(HyCalError, match="does not exist"):
        new_project(tmp_path / "nowhere" / "p.hycal").learn(arrivals("a/b", 1))
    with pytest.raises(HyCalError, match="no model at"):
        Project(Path(tmp_path / "none.hycal"))


def test_every_version_ever_written_has_a_golden_project():
    assert {path.name for path in GOLDEN.glob("project-v*.hycal")} == {
        f"project-v{version}.hycal" for version in range(1, model_file.VERSION + 1)
    }


def test_a_flipped_bit_of_a_sample_is_noticed_in_the_first_version_too(tmp_path):
    """It has no checksums, but its history ends with the hash of the model."""
    path = Path(shutil.copy(GOLDEN / "project-v1.hycal", tmp_path))
    row = Project(path).state.examples[0].row.tobytes()
    content = bytearray(path.read_bytes())
    content[content.index(row)] ^= 1
    path.write_bytes(content)
    with pytest.raises(HyCalError, match="its history ends with"):
        Project(path)


def test_a_sealed_project_of_version_3_is_read(tmp_path):
    golden = GOLDEN / "project-v3.hycal"
    expected = json.loads(golden.with_suffix(".json").read_text())
    project = Project(shutil.copy(golden, tmp_path))
    assert project.state.hash == expected["hash"] and list(project.state.labels) == expected["labels"]
    assert project.state.sealed and project.state.n_images == 10 and not project.state.examples
    assert project.learn(arrivals("pets/cat", 7)).after != expected["hash"]
    assert Project(project.path).state.hash == project.state.hash


@pytest.mark.parametrize("version", [1, 2])
def test_projects_of_earlier_versions_are_read(tmp_path, version):
    golden = GOLDEN / f"project-v{version}.hycal"
    expected = json.loads(golden.with_suffix(".json").read_text())
    path = Path(shutil.copy(golden, tmp_path))
    project = Project(path)
    assert project.state.hash == expected["hash"] and list(project.state.labels) == expected["labels"]
    assert [e.name for e in project.state.examples] == expected["names"]
    assert [e.thumbnail for e in project.state.examples] == [f"picture of {n[:-4]}".encode() for n in expected["names"]]
    for before in reversed(expected["hashes"][:-1]):
        assert project.undo().after == before
    project.undo()
    assert not project.state.classes


def test_a_project_of_the_present_version_is_written_as_it_was_read(tmp_path):
    golden = GOLDEN / f"project-v{model_file.VERSION}.hycal"
    read = model_file.read(golden)
    model_file.write(tmp_path / "p.hycal", project_content(state_of(read)))
    written = model_file.read(tmp_path / "p.hycal")
    assert {**written.manifest, "hycal": ""} == {**read.manifest, "hycal": ""}
    assert {name: (a.dtype, a.shape, a.tobytes()) for name, a in written.tensors.items()} == {
        name: (a.dtype, a.shape, a.tobytes()) for name, a in read.tensors.items()
    }


def test_rows_are_sorted_once_and_the_table_of_a_file_is_built_once(tmp_path, monkeypatch):
    pets_and_cars(tmp_path / "p.hycal")
    tables, make, sort = [], Records.__init__, ClassSamples.of

    def unsorted(rows):
        raise AssertionError(f"{len(rows)} rows are sorted again")

    def counted(self, *parts):
        make(self, *parts)
        tables.append(self)

    monkeypatch.setattr(Records, "__init__", counted)
    monkeypatch.setattr(ClassSamples, "of", unsorted)
    project = Project(tmp_path / "p.hycal")
    (table,) = tables
    assert all(project.state.classes[label].record is record for label, record in table.by_label.items())
    project.learn(arrivals("pets/hen", 1, 2, 3))
    rows = project.state.classes["pets/hen"].rows
    np.testing.assert_array_equal(rows, sort(rows[::-1]).rows)
