"""The journal: a replay gives the state that writing the whole file at every change gives."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from hycal import HyCalError, ModelFileError, load
from hycal.project import Project, empty_state, state_file
from hycal.project.file import state_of
from hycal.project.journal import _frames, framed, journal_of, replay
from hycal.storage import model_file
from tests.support.projects import OPERATIONS, SPACE, apply, arrivals, assert_same, example, new_project, pets_and_cars


def journaled(path) -> Project:
    """A project with one class in its file; what follows goes to the journal."""
    started = new_project(path)
    started.learn(arrivals("d0/c0", 0, 1, 2))
    return Project(path, journal=True)


@given(operations=OPERATIONS)
def test_the_same_as_writing_the_whole_file(tmp_path_factory, operations):
    folder = tmp_path_factory.mktemp("journal")
    whole, appending = new_project(folder / "whole.hycal"), journaled(folder / "j.hycal")
    whole.learn(arrivals("d0/c0", 0, 1, 2))
    base = (folder / "j.hycal").read_bytes()
    for operation in operations:
        outcomes = []
        for target in (whole, appending):
            try:
                apply(target, *operation)
                outcomes.append("done")
            except HyCalError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]
        assert_same(whole.state, appending.state)
    whole_needed = any(entry.title.startswith(("change of method", "change of views")) for entry in whole.state.history)
    assert whole_needed or (folder / "j.hycal").read_bytes() == base, "the file itself was left alone"
    again = Project(folder / "j.hycal")
    assert_same(whole.state, again.state)
    assert [(e.action, e.what, e.before, e.after) for e in again.state.history] == [
        (e.action, e.what, e.before, e.after) for e in whole.state.history
    ]
    if whole.state.classes:
        assert load(folder / "j.hycal").classes_.tolist() == list(whole.state.labels)
    appending.close()
    assert not journal_of(folder / "j.hycal").exists()
    assert_same(whole.state, Project(folder / "j.hycal").state)
    last = whole.state
    while any(entry.undoable for entry in whole.state.history):
        whole.undo()
        again.undo()
        assert_same(whole.state, again.state)
    for _ in range(whole.state.version - last.version):
        again.redo()
    assert_same(last, again.state)


def test_a_journal_that_was_cut_off_leads_to_the_change_before(tmp_path):
    path = tmp_path / "p.hycal"
    target = journaled(path)
    states, ends = [target.state], [0]
    for number in range(4, 7):
        target.learn(arrivals("d1/c1", number))
        states.append(target.state)
        ends.append(journal_of(path).stat().st_size)
    content = journal_of(path).read_bytes()
    for length in [*range(0, len(content), 97), *ends, *(end + 1 for end in ends[:-1]), *(end - 1 for end in ends[1:])]:
        journal_of(path).write_bytes(content[:length])
        expected = states[sum(end <= length for end in ends[1:])]
        assert_same(Project(path).state, expected)
    journal_of(path).write_bytes(content[: ends[2] + 50])
    Project(path, journal=True).learn(arrivals("d2/c2", 1))  # overwrites the torn end
    assert Project(path).state.labels == ("d0/c0", "d1/c1", "d2/c2")
    assert len(Project(path).state.classes["d1/c1"].examples) == 2


@pytest.mark.parametrize("room", [1, 39, 40, 41, 4096])
def test_room_that_a_power_cut_left_empty_is_no_damage(tmp_path, room):
    """A file system may have made the file longer before it wrote the frame."""
    path = tmp_path / "p.hycal"
    target = journaled(path)
    target.learn(arrivals("d1/c1", 4))
    content = journal_of(path).read_bytes()
    journal_of(path).write_bytes(content + bytes(room))
    assert_same(Project(path).state, target.state)
    Project(path, journal=True).learn(arrivals("d2/c2", 1))
    assert not journal_of(path).read_bytes()[len(content) :].startswith(bytes(40)), "the next change takes its place"
    assert Project(path).state.labels == ("d0/c0", "d1/c1", "d2/c2")


def test_emptiness_with_something_behind_it_is_damage(tmp_path):
    path = tmp_path / "p.hycal"
    target = journaled(path)
    target.learn(arrivals("d1/c1", 4))
    content = journal_of(path).read_bytes()
    target.learn(arrivals("d1/c1", 5))
    second = journal_of(path).read_bytes()[len(content) :]
    journal_of(path).write_bytes(content + bytes(4096) + second)
    with pytest.raises(ModelFileError, match=f"damaged at byte {len(content)}"):
        Project(path)


def test_a_damaged_journal_is_told(tmp_path):
    path = tmp_path / "p.hycal"
    target = journaled(path)
    for number in range(4, 7):
        target.learn(arrivals("d1/c1", number))
    content = bytearray(journal_of(path).read_bytes())
    content[100] ^= 1
    journal_of(path).write_bytes(content)
    with pytest.raises(ModelFileError, match="damaged at byte 0"):
        Project(path)
    content[100] ^= 1
    for place in (-1, -2, -100):  # in the last frame as well: it was accepted
        content[place] ^= 1
        journal_of(path).write_bytes(content)
        with pytest.raises(ModelFileError, match=r"damaged at byte [1-9]"):
            Project(path)
        content[place] ^= 1
    journal_of(path).write_bytes(content)
    assert_same(Project(path).state, target.state)


def test_a_journal_of_another_model_is_told(tmp_path):
    target = journaled(tmp_path / "p.hycal")
    target.learn(arrivals("d1/c1", 4))
    other = new_project(tmp_path / "other.hycal")
    other.learn(arrivals("d0/c0", 7))
    journal_of(other.path).write_bytes(journal_of(target.path).read_bytes())
    with pytest.raises(ModelFileError, match="goes on from another model"):
        Project(other.path)


def test_a_journal_beside_a_restored_model_is_told_with_what_to_do(tmp_path):
    path = tmp_path / "p.hycal"
    older = new_project(path)
    older.learn(arrivals("d0/c0", 0, 1))
    copy = path.read_bytes()
    older.learn(arrivals("d0/c0", 2))
    Project(path, journal=True).learn(arrivals("d1/c1", 4))
    path.write_bytes(copy)
    with pytest.raises(ModelFileError, match=rf"restored from a copy.* move {journal_of(path)} away"):
        Project(path)
    journal_of(path).rename(tmp_path / "aside")
    assert Project(path).state.labels == ("d0/c0",)


def test_a_journal_that_seems_to_be_taken_in_and_is_of_another_model_is_told(tmp_path):
    target = journaled(tmp_path / "p.hycal")
    target.learn(arrivals("d1/c1", 4))
    other = new_project(tmp_path / "other.hycal")
    for number in range(4):
        other.learn(arrivals("d0/c0", number))
    journal_of(other.path).write_bytes(journal_of(target.path).read_bytes())
    with pytest.raises(ModelFileError, match="change 2 in it is another one"):
        Project(other.path)


def first_frames(journal: bytes) -> bytes:
    """The same frames as the first version of the format wrote them."""
    frames = b""
    for content, _ in _frames(journal, Path("journal")):
        frames += len(content).to_bytes(8, "little") + hashlib.sha256(content).digest() + content
    return frames


def test_journals_of_the_first_version_are_read(tmp_path):
    path = tmp_path / "p.hycal"
    target = journaled(path)
    for number in range(4, 6):
        target.learn(arrivals("d1/c1", number))
    journal_of(path).write_bytes(first_frames(journal_of(path).read_bytes()))
    assert_same(Project(path).state, target.state)
    again = Project(path, journal=True)
    again.learn(arrivals("d1/c1", 6))  # a frame of the present version behind them
    assert_same(Project(path).state, again.state)


HOSTILE = {
    "rows that are not finite": (lambda h, t: t["rows"].fill(np.nan), "finite unit rows"),
    "rows of another width": (lambda h, t: t.update(rows=np.eye(3, dtype=np.float32)[:1]), "numbers wide"),
    "texts that are not unit": (lambda h, t: t.update(texts=np.ones((1, 12), np.float32)), "finite unit rows"),
    "a label of another kind": (lambda h, t: h["shelves"].append([7, None]), "Labels mix"),
    "text that is no Unicode": (lambda h, t: h["entry"].__setitem__(2, "\ud800"), "malformed frame"),
    "a memo that is not finite": (lambda h, t: h.update(memo={"ridge": float("inf")}), "malformed frame"),
    "a memo that is no object": (lambda h, t: h.update(memo=[]), "malformed frame"),
    "an entry that is no text": (lambda h, t: h["entry"].__setitem__(1, 3), "malformed frame"),
}


@pytest.mark.parametrize(("change", "message"), HOSTILE.values(), ids=HOSTILE)
def test_a_frame_with_a_right_checksum_is_checked_as_well(tmp_path, change, message):
    path = tmp_path / "p.hycal"
    journaled(path).learn(arrivals("d1/c1", 4))
    ((content, _),) = _frames(journal_of(path).read_bytes(), path)
    header, tensors = json.loads(safe_metadata(content)["hycal-journal"]), load_tensors(content)
    change(header, tensors)
    journal_of(path).write_bytes(framed(save_tensors(tensors, {"hycal-journal": json.dumps(header)})))
    with pytest.raises(ModelFileError, match=message):
        Project(path)


def safe_metadata(content: bytes) -> dict[str, str]:
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]


def test_every_flipped_bit_of_a_journal_is_told(tmp_path):
    path = tmp_path / "p.hycal"
    target = journaled(path)
    target.correct(example("d1/c1", 4), "d1/c1")
    target.undo()
    state, sound = state_of(model_file.read(path)), journal_of(path).read_bytes()
    for place in range(len(sound)):
        damaged = bytearray(sound)
        damaged[place] ^= 1 << place % 8
        with pytest.raises(ModelFileError):
            replay(state, bytes(damaged), source=path)


def test_a_journal_that_was_taken_in_does_no_harm(tmp_path):
    path = tmp_path / "p.hycal"
    target = journaled(path)
    target.learn(arrivals("d1/c1", 4))
    target.undo()
    target.learn(arrivals("d1/c1", 5))
    left = journal_of(path).read_bytes()
    target.close()
    journal_of(path).write_bytes(left)  # as if the power had failed between the file and the removal
    again = Project(path, journal=True)
    assert_same(again.state, target.state)
    again.learn(arrivals("d1/c1", 6))
    assert journal_of(path).stat().st_size < len(left)
    assert len(Project(path).state.classes["d1/c1"].examples) == 2


def test_forgetting_for_good_leaves_no_journal(tmp_path):
    path = tmp_path / "p.hycal"
    target = journaled(path)
    gone = arrivals("d1/c1", 4)[0].example
    target.learn(arrivals("d1/c1", 4, 5))
    target.forget(gone.key)
    assert gone.row.tobytes() in journal_of(path).read_bytes()
    target.undo()
    target.forget_for_good(gone.key)
    assert not journal_of(path).exists() and gone.row.tobytes() not in path.read_bytes()


def bytes_in(folder):
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_a_forgetting_that_was_killed_before_the_journal_went_leaves_nothing_either(tmp_path, monkeypatch):
    path, gone = tmp_path / "p.hycal", example("d1/c1", 4)
    target = journaled(path)
    target.learn(arrivals("d1/c1", 4, 5))

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Project, "_drop_journal", killed)
        with pytest.raises(KeyboardInterrupt):
            target.forget_for_good(gone.key)
    assert gone.key in Project(path).state.label_of, "the journal goes first, so it can be done again"
    Project(path).forget_for_good(gone.key)
    assert gone.row.tobytes() not in bytes_in(tmp_path) and gone.thumbnail not in bytes_in(tmp_path)


def test_what_killed_writers_left_goes_also_if_the_image_is_gone_already(tmp_path):
    path, gone = tmp_path / "p.hycal", example("d0/c0", 1)
    target = journaled(path)
    target.forget_for_good(gone.key)
    left = tmp_path / ".p.hycal.0123.part"
    left.mkdir()
    (left / "content").write_bytes(gone.row.tobytes())
    with pytest.raises(HyCalError, match="There is no class"):
        target.forget_for_good(gone.key)
    assert gone.row.tobytes() not in bytes_in(tmp_path)


def test_other_writers_and_long_journals(tmp_path, monkeypatch):
    path = tmp_path / "p.hycal"
    one, other = journaled(path), Project(path)
    one.learn(arrivals("d1/c1", 4))
    other.learn(arrivals("d1/c1", 5))  # writes the whole file, with what the journal held
    assert not journal_of(path).exists()
    one.learn(arrivals("d1/c1", 6))
    assert len(Project(path).state.classes["d1/c1"].examples) == 3
    monkeypatch.setattr(state_file, "MOST_FRAMES", 3)
    for number in range(10, 20):
        one.learn(arrivals("d1/c1", number))
        assert len(Project(path).state.classes["d1/c1"].examples) == 3 + number - 9
    assert one.state.space == SPACE


def test_another_project_object_notices(tmp_path):
    target = journaled(tmp_path / "p.hycal")
    other = Project(tmp_path / "p.hycal")
    target.learn(arrivals("d1/c1", 4))
    assert other.current().hash == other.refresh().hash == target.state.hash


def test_closing_moves_all_into_the_file_once(tmp_path):
    target = journaled(tmp_path / "p.hycal")
    target.learn(arrivals("d1/c1", 4))
    state = target.state
    target.close()
    assert target.state is state and not journal_of(target.path).exists()
    written = target.path.read_bytes()
    target.close()
    assert target.path.read_bytes() == written


@pytest.mark.parametrize("writer", ["the same", "another"])
def test_changes_go_on_while_the_file_takes_the_journal_in(tmp_path, monkeypatch, writer):
    path = tmp_path / "p.hycal"
    target = journaled(path)
    target.learn(arrivals("d1/c1", 4))
    other = target if writer == "the same" else Project(path, journal=True)
    prepared = model_file.prepared

    @contextmanager
    def slowly(*given):
        with prepared(*given) as install:
            other.learn(arrivals("d1/c1", 5))  # would wait in vain if the lock were held
            other.undo()
            yield install

    monkeypatch.setattr(model_file, "prepared", slowly)
    target.close()
    monkeypatch.undo()
    assert target.waiting == 2
    assert state_of(model_file.read(path)).version == target.state.version - 2
    assert_same(Project(path).state, target.state)
    assert_same(other.refresh(), target.state)
    target.learn(arrivals("d1/c1", 6))
    assert_same(Project(path).state, target.state)
    target.close()
    assert target.waiting == 0 and not journal_of(path).exists()
    assert_same(Project(path).state, target.state)


def test_what_another_wrote_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "p.hycal"
    target = journaled(path)
    gone = arrivals("d1/c1", 4)[0].example
    target.learn(arrivals("d1/c1", 4, 5))
    prepared = model_file.prepared

    forgetting = threading.Thread(target=lambda: Project(path).forget_for_good(gone.key))  # writes the whole file

    @contextmanager
    def slowly(*given):
        with prepared(*given) as install:
            monkeypatch.undo()
            before = path.stat().st_ino
            forgetting.start()
            while path.stat().st_ino == before or journal_of(path).exists():
                time.sleep(0.001)
            yield install

    monkeypatch.setattr(model_file, "prepared", slowly)
    target.close()
    forgetting.join()  # it waits for the file that `close` has written beside the model
    assert gone.row.tobytes() not in b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert_same(Project(path).state, target.state)


def test_the_first_change_of_all_makes_the_file(tmp_path):
    target = Project(tmp_path / "new.hycal", empty_state(SPACE, has_text=False), journal=True)
    target.learn(arrivals("d1/c1", 4))
    assert target.path.is_file() and not journal_of(target.path).exists()


def test_text_embeddings_of_new_classes_are_kept(tmp_path):
    target = journaled(tmp_path / "p.hycal")
    text = np.eye(12, dtype=np.float32)[0]
    target.correct(example("d1/c1", 4), "d1/c1", {"d1/c1": text})
    np.testing.assert_array_equal(Project(target.path).state.classes["d1/c1"].text, text)


def test_a_link_to_a_project_is_that_project(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "here").mkdir()
    path, link = tmp_path / "real" / "p.hycal", tmp_path / "here" / "p.hycal"
    pets_and_cars(path)
    link.symlink_to(path)
    Project(link).rename("pets/dog", "hound")
    with_journal = Project(link, journal=True)
    with_journal.rename("pets/cat", "tiger")
    assert link.is_symlink() and sorted(item.name for item in link.parent.iterdir()) == ["p.hycal"]
    assert {"pets/hound", "pets/tiger"} <= set(Project(path).state.labels)
    with_journal.close()
    assert link.is_symlink() and Project(path).state.hash == Project(link).state.hash


def test_the_journal_of_a_removed_project_is_not_that_of_a_new_one(tmp_path):
    path = tmp_path / "p.hycal"
    pets_and_cars(path)
    for _ in range(4):
        Project(path, journal=True).rename("pets/dog", "hound")
        Project(path, journal=True).rename("pets/hound", "dog")
    state = Project(path).state
    orphan = journal_of(path).read_bytes()
    for make in (lambda: Project.create(path, state), lambda: new_project(path).learn(arrivals("pets/cat", 1))):
        path.unlink()
        journal_of(path).write_bytes(orphan)
        make()
        assert Project(path).state.labels and not journal_of(path).exists()


def _link(place):
    (place.parent / "elsewhere").write_bytes(b"")
    place.symlink_to(place.parent / "elsewhere")


UNFIT = {
    "a link": _link,
    "a link to nothing": lambda place: place.symlink_to(place.parent / "nothing"),
    "a pipe": lambda place: os.mkfifo(place),
    "a folder": lambda place: place.mkdir(),
    "a terabyte": lambda place: (place.touch(), os.truncate(place, 2**40)),
}


@pytest.mark.skipif(sys.platform == "win32", reason="links, pipes and sparse files")
@pytest.mark.parametrize("make", UNFIT.values(), ids=UNFIT)
def test_what_lies_in_the_place_of_a_journal_is_not_followed(tmp_path, make):
    held = journaled(tmp_path / "p.hycal")
    make(journal_of(held.path))
    with pytest.raises(ModelFileError, match=r"no file that can be the journal of a model.*move .* away"):
        Project(held.path)
    with pytest.raises(HyCalError):
        held.rename("d0/c0", "other")
    assert not (tmp_path / "nothing").exists()
    if (tmp_path / "elsewhere").exists():
        assert (tmp_path / "elsewhere").read_bytes() == b""
