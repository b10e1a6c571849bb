"""Sorting a pile into folders: decisions, names, manifest; going on where a run stopped; undo to the byte."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.faults.sorting import tree
from hycal import NCM, HyCalError
from hycal.pile import moves
from hycal.pile.manifest import NAME, read_manifest
from hycal.pile.moves import undo_sort
from hycal.pile.sorting import Decision, ImageToSort, decide, new_manifest, sort_images
from hycal.pile.strangers import chance_learned
from tests.pile.test_suggestion import pile
from tests.support.schemas import schema


def image(room: Path, name: str, content: str = "", label: str = "x/cat", place: str = "sorted") -> ImageToSort:
    """A file of the pile, and where it belongs."""
    path = room / "pile" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content or name)
    return ImageToSort(name, hashlib.sha256(path.read_bytes()).digest(), Decision(place, label, 0.75))


def run(room: Path, images: list[ImageToSort], *, way="copy", layout="folders", csv=False, sidecars=False):
    fresh = new_manifest(room / "pile", room / "out", way=way, layout=layout, csv=csv)
    return sort_images(room / "out", fresh, images, sidecars=sidecars)


def names(room: Path) -> set[str]:
    """The files of the sorted folder, but its manifest and lock."""
    return {name for name, (content, _) in tree(room / "out").items() if content and name != NAME}


def test_the_surest_are_sorted_as_long_as_few_are_wrong() -> None:
    X, y = pile(30, 30, 30, spread=1.0)
    classifier = NCM().fit(X[y < 2][::3], y[y < 2][::3])
    found = decide(classifier, X[y < 2], error=0.05, unknown=None)
    sure = [one.probability for one in found if one.place == "sorted"]
    unsure = [one.probability for one in found if one.place == "unsure"]
    assert sure and unsure and min(sure) >= max(unsure) and 1.0 - np.mean(sure) <= 0.05
    assert {one.place for one in decide(classifier, X[y < 2], error=0.5, unknown=None)} == {"sorted"}
    strange = [one.place for one in decide(classifier, X[y == 2], error=0.5)]
    assert strange.count("unknown") > 8


def test_a_pile_with_classes_that_nobody_taught_is_sorted_with_more_care() -> None:
    X, y = pile(60, 60, 60, 60, spread=0.6, seed=2)
    classifier = NCM().fit(X[y < 2][::3], y[y < 2][::3])
    rest = np.setdiff1d(np.arange(len(X)), np.flatnonzero(y < 2)[::3])
    wrong = {}
    for unknown in (0.05, None):
        found = decide(classifier, X[rest], error=0.1, unknown=unknown)
        wrong[unknown] = [
            one.label != label for one, label in zip(found, y[rest], strict=True) if one.place == "sorted"
        ]
    assert len(wrong[0.05]) >= 10 and np.mean(wrong[0.05]) < 0.5 * np.mean(wrong[None])


def test_a_pile_of_learned_classes_loses_nothing_to_that() -> None:
    X, y = pile(60, 60, spread=1.6, seed=2)
    classifier = NCM().fit(X[::3], y[::3])
    familiarity = classifier.familiarity_
    assert chance_learned(familiarity(X), familiarity.held_out).min() == 1.0
    assert chance_learned(familiarity(X), familiarity.held_out[:1]).min() == 1.0


def test_what_a_person_labelled_goes_there() -> None:
    X, y = pile(10, 10)
    classifier = NCM().fit(X, y)
    assert decide(classifier, X[:2], error=0.5, known={1: 1})[1] == Decision("sorted", 1, 1.0)
    assert decide(classifier, np.empty((0, X.shape[1]))) == []
    with pytest.raises(HyCalError, match="error is 0"):
        decide(classifier, X, error=0.0)


@pytest.mark.parametrize("way", ["copy", "move", "link"])
def test_names_are_kept_numbered_where_they_meet_and_restored(tmp_path: Path, way: str) -> None:
    images = [image(tmp_path, "a/1.jpg"), image(tmp_path, "b/1.jpg"), image(tmp_path, "b/1.JPG")]
    images += [image(tmp_path, "2.jpg", place="unsure"), image(tmp_path, "3.jpg", place="unknown")]
    before = tree(tmp_path)
    _, problems = run(tmp_path, images, way=way)
    assert problems == []
    assert names(tmp_path) == {"x/cat/1.jpg", "x/cat/1-2.jpg", "x/cat/1-3.JPG", "unsure/2.jpg", "unknown/3.jpg"}
    assert (tmp_path / "out/x/cat/1-2.jpg").read_text() == "b/1.jpg"
    assert (tmp_path / "pile/a/1.jpg").exists() == (way != "move")
    assert undo_sort(tmp_path / "out")[1] == []
    assert tree(tmp_path) == before


def test_the_schema_describes_the_list(tmp_path: Path) -> None:
    form = schema("sort")
    images = [image(tmp_path, "1.jpg"), image(tmp_path, "2.jpg", place="unsure")]
    run(tmp_path, images, layout="coco", csv=True, sidecars=True)
    lines = [json.loads(line) for line in (tmp_path / "out" / NAME).read_text().splitlines()]
    for line in lines:
        form.validate(line)
    head, first, _ = lines
    assert not form.is_valid({**head, "way": "burn"}) and not form.is_valid({**head, "hycal-sort": 2})
    assert not form.is_valid({**first, "place": "lost"}) and not form.is_valid({**first, "probability": 2})


@pytest.mark.parametrize(
    "fault",
    [
        {"folder": "pile"},
        {"folder": 7},
        {"made": ["../x"]},
        {"made": [".", ".git"]},
        {"written": ["notes.txt"]},
        {"done": 1.5},
        {"done": -1},
        {"source": "a/../../1.jpg"},
        {"target": "/etc/passwd"},
        {"target": "x/.hidden.jpg"},
        {"sidecar": "x/\0.xmp"},
        {"label": None},
        {"sha256": 7},
        {"probability": "1"},
        {"probability": -0.5},
        {"size": 1},
    ],
    ids=str,
)
def test_the_schema_refuses_what_the_reader_refuses(tmp_path: Path, fault: dict[str, object]) -> None:
    form, path = schema("sort"), tmp_path / "out" / NAME
    run(tmp_path, [image(tmp_path, "a/./b..c/1.jpg")])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(map(form.is_valid, lines)) and read_manifest(tmp_path / "out")
    (name,) = fault
    lines[0 if name in lines[0] else 1].update(fault)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert not all(map(form.is_valid, lines))
    with pytest.raises(HyCalError, match="is not a manifest"):
        read_manifest(tmp_path / "out")


def test_no_file_of_others_is_replaced_or_removed(tmp_path: Path) -> None:
    (tmp_path / "out/x/cat").mkdir(parents=True)
    (tmp_path / "out/x/cat/1.jpg").write_text("mine")
    one = image(tmp_path, "1.jpg")
    before = tree(tmp_path)
    run(tmp_path, [one], way="move", sidecars=True)
    assert (tmp_path / "out/x/cat/1.jpg").read_text() == "mine"
    assert (tmp_path / "out/x/cat/1-2.jpg").read_text() == "1.jpg"
    undo_sort(tmp_path / "out")
    assert tree(tmp_path) == before


def test_a_file_that_takes_the_place_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = image(tmp_path, "1.jpg")
    write = moves.write_manifest

    def write_and_take(out, manifest):
        write(out, manifest)
        (out / "x/cat").mkdir(parents=True, exist_ok=True)
        (out / "x/cat/1.jpg").write_text("mine")

    monkeypatch.setattr(moves, "write_manifest", write_and_take)
    manifest, (problem,) = run(tmp_path, [one], way="move")
    monkeypatch.undo()
    assert "another content" in problem.reason and manifest.entries == ()
    assert (tmp_path / "pile/1.jpg").exists() and (tmp_path / "out/x/cat/1.jpg").read_text() == "mine"
    manifest, problems = run(tmp_path, [one], way="move")
    assert not problems and manifest.entries[0].target == "x/cat/1-2.jpg"


def test_the_same_command_goes_on_with_what_is_new(tmp_path: Path) -> None:
    first = [image(tmp_path, "1.jpg")]
    run(tmp_path, first)
    manifest, problems = run(tmp_path, [*first, image(tmp_path, "2.jpg")])
    assert [entry.source for entry in manifest.entries] == ["1.jpg", "2.jpg"] and not problems
    assert names(tmp_path) == {"x/cat/1.jpg", "x/cat/2.jpg"}


def test_a_new_image_under_the_name_of_a_moved_one_is_not_lost(tmp_path: Path) -> None:
    run(tmp_path, [image(tmp_path, "1.jpg", "old")], way="move")
    manifest = read_manifest(tmp_path / "out")
    again = image(tmp_path, "1.jpg", "new")
    moves.carry_out(tmp_path / "out", type(manifest)(**{**vars(manifest), "done": 0}))  # as after a kill at the end
    assert (tmp_path / "pile/1.jpg").read_text() == "new"
    run(tmp_path, [again], way="move")
    assert (tmp_path / "out/x/cat/1-2.jpg").read_text() == "new"
    _, (problem,) = undo_sort(tmp_path / "out")
    assert "another file in its old place" in problem.reason
    assert {path.read_text() for path in tmp_path.rglob("*.jpg")} == {"old", "new"}


def test_sorting_goes_on_after_half_an_undo(tmp_path: Path) -> None:
    images = [image(tmp_path, f"{number}.jpg") for number in range(3)]
    run(tmp_path, images, way="move")
    before = tree(tmp_path / "out").keys()

    def stop(done: int, of: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        undo_sort(tmp_path / "out", watch=stop)
    assert len(list((tmp_path / "pile").iterdir())) == 2
    run(tmp_path, images, way="move")
    assert tree(tmp_path / "out").keys() == before and not list((tmp_path / "pile").iterdir())


def test_undo_counts_what_was_in_place(tmp_path: Path) -> None:
    run(tmp_path, [image(tmp_path, f"{number}.jpg") for number in range(3)], way="move")
    (tmp_path / "out/x/cat/1.jpg").rename(tmp_path / "pile/1.jpg")  # as if a kill had come before it was moved
    undone, problems = undo_sort(tmp_path / "out")
    assert {entry.source for entry in undone.entries} == {"0.jpg", "2.jpg"} and not problems


def test_a_copy_that_was_changed_stays(tmp_path: Path) -> None:
    run(tmp_path, [image(tmp_path, "1.jpg"), image(tmp_path, "2.jpg")])
    (tmp_path / "out/x/cat/1.jpg").write_text("edited")
    _, (problem,) = undo_sort(tmp_path / "out")
    assert problem.file.name == "1.jpg" and (tmp_path / "out/x/cat/1.jpg").read_text() == "edited"
    assert not (tmp_path / "out/x/cat/2.jpg").exists() and (tmp_path / "out" / NAME).exists()
    (tmp_path / "out/x/cat/1.jpg").unlink()
    assert undo_sort(tmp_path / "out")[1] == [] and not (tmp_path / "out").exists()


def test_an_image_that_changed_since_it_was_seen_is_not_copied(tmp_path: Path) -> None:
    one = image(tmp_path, "1.jpg")
    (tmp_path / "pile/1.jpg").write_text("another")
    _, (problem,) = run(tmp_path, [one])
    assert "changed after it was sorted" in problem.reason and names(tmp_path) == set()


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM])
def test_file_systems_without_second_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Between two file systems (EXDEV) an image is copied; where links are impossible (EPERM) it is renamed."""
    link, inside = os.link, lambda path: "pile" in Path(path).parts[-3:]

    def refuse(source, target, **options):
        if code == errno.EPERM or inside(source) != inside(target):
            raise OSError(code, os.strerror(code))
        link(source, target, **options)

    monkeypatch.setattr(os, "link", refuse)
    images = [image(tmp_path, "1.jpg"), image(tmp_path, "2.jpg")]
    before = tree(tmp_path)
    _, problems = run(tmp_path, images, way="move")
    assert (
        not problems and names(tmp_path) == {"x/cat/1.jpg", "x/cat/2.jpg"} and not list((tmp_path / "pile").iterdir())
    )
    assert undo_sort(tmp_path / "out")[1] == [] and tree(tmp_path) == before


def test_layouts_and_lists(tmp_path: Path) -> None:
    images = [
        image(tmp_path, "1.jpg"),
        image(tmp_path, "2.jpg", label="y/cat"),
        image(tmp_path, "3.jpg", place="unsure"),
    ]
    run(tmp_path, images, layout="coco", csv=True, sidecars=True)
    tagged = {f"images/{number}.jpg{suffix}" for number in (1, 2) for suffix in ("", ".xmp")}
    assert names(tmp_path) == {*tagged, "unsure/3.jpg", "sorted.csv", "annotations.json"}
    coco = json.loads((tmp_path / "out/annotations.json").read_text())
    assert [entry["file_name"] for entry in coco["images"]] == ["1.jpg", "2.jpg"]
    assert [entry["name"] for entry in coco["categories"]] == ["x/cat", "y/cat"]
    assert [entry["category_id"] for entry in coco["annotations"]] == [1, 2]
    lines = (tmp_path / "out/sorted.csv").read_text().splitlines()
    assert lines[1] == "1.jpg,images/1.jpg,sorted,x/cat,0.750000" and len(lines) == 4
    sidecar = (tmp_path / "out/images/2.jpg.xmp").read_text()
    assert "<rdf:li>cat</rdf:li>" in sidecar and "<rdf:li>y|cat</rdf:li>" in sidecar
    undo_sort(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    run(tmp_path, images, layout="imagefolder")
    assert names(tmp_path) == {"classes/x-cat/1.jpg", "classes/y-cat/2.jpg", "unsure/3.jpg"}


def test_labels_of_strangers_name_no_other_folder(tmp_path: Path) -> None:
    run(tmp_path, [image(tmp_path, "1.jpg", label="../../up"), image(tmp_path, "2.jpg", label="..")])
    assert names(tmp_path) == {"%2E./..%2Fup/1.jpg".replace("..%2F", "%2E.%2F"), "%2E./2.jpg"}


@pytest.mark.parametrize("label", ["Unsure/cat", "hycal-sort.jsonl/cat", "sorted.csv/cat", "x/", "/", "x/" + 90 * "字"])
def test_classes_whose_folder_cannot_be_are_refused_before_anything_is_made(tmp_path: Path, label: str) -> None:
    with pytest.raises(HyCalError, match="Rename it"):
        run(tmp_path, [image(tmp_path, "1.jpg", label=label)])
    assert not (tmp_path / "out").exists()


def test_an_image_and_a_class_of_one_name_have_two_places(tmp_path: Path) -> None:
    _, problems = run(tmp_path, [image(tmp_path, "cat", label="x"), image(tmp_path, "1.jpg", label="x/cat")])
    assert not problems and names(tmp_path) == {"x/cat-2", "x/cat/1.jpg"}


def test_a_manifest_of_a_stranger_touches_nothing_outside(tmp_path: Path) -> None:
    run(tmp_path, [image(tmp_path, "1.jpg")])
    manifest = tmp_path / "out" / NAME
    text = manifest.read_text()
    for wrong in ("../pile/1.jpg", "/etc/passwd"):
        manifest.write_text(text.replace("x/cat/1.jpg", wrong))
        with pytest.raises(HyCalError, match="leaves its folder"):
            undo_sort(tmp_path / "out")
    manifest.write_text(text.replace('"source": "1.jpg"', '"source": ".bashrc"'))
    with pytest.raises(HyCalError, match="is hidden"):
        undo_sort(tmp_path / "out")
    manifest.write_text(text.replace('"written": []', '"written": ["1.jpg"]'))
    with pytest.raises(HyCalError, match="lists are unknown"):
        undo_sort(tmp_path / "out")
    manifest.write_text(text.replace('"label": "x/cat"', '"label": 7'))
    with pytest.raises(HyCalError, match="wrong types"):
        undo_sort(tmp_path / "out")
    manifest.write_text("{}")
    with pytest.raises(HyCalError, match="not a manifest of `hycal sort`"):
        undo_sort(tmp_path / "out")
    assert (tmp_path / "pile/1.jpg").exists() and (tmp_path / "out/x/cat/1.jpg").exists()


@pytest.mark.parametrize("way", ["copy", "move"])
def test_links_in_a_sorted_folder_lead_nowhere(tmp_path: Path, way: str) -> None:
    run(tmp_path, [image(tmp_path, "1.jpg")], way=way, sidecars=True)
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "out/x/cat").rename(elsewhere)
    (tmp_path / "out/x/cat").symlink_to(elsewhere)
    before = tree(elsewhere)
    _, problems = undo_sort(tmp_path / "out")
    assert "is a link" in problems[0].reason and tree(elsewhere) == before


def test_no_folder_is_made_or_removed_through_a_link(tmp_path: Path) -> None:
    run(tmp_path, [image(tmp_path, "1.jpg")])
    (tmp_path / "elsewhere/empty").mkdir(parents=True)
    (tmp_path / "out/away").symlink_to(tmp_path / "elsewhere")
    manifest = tmp_path / "out" / NAME
    manifest.write_text(manifest.read_text().replace('"made": [', '"made": ["away/new", "away/empty", '))
    run(tmp_path, [image(tmp_path, "2.jpg")])
    undo_sort(tmp_path / "out")
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["empty"]


def test_only_ordinary_files_are_read_and_moved(tmp_path: Path) -> None:
    run(tmp_path, [image(tmp_path, "1.jpg"), image(tmp_path, "2.jpg")], way="move")
    os.mkfifo(tmp_path / "pile/1.jpg")  # reading it would never end
    (tmp_path / "out/x/cat/2.jpg").unlink()
    (tmp_path / "out/x/cat/2.jpg").mkdir()
    _, problems = undo_sort(tmp_path / "out")
    assert ["ordinary file" in problem.reason for problem in problems] == [True, True]
    assert (tmp_path / "out/x/cat/2.jpg").is_dir() and (tmp_path / "out/x/cat/1.jpg").read_text() == "1.jpg"


def test_a_link_in_place_of_the_hidden_folder_is_not_followed(tmp_path: Path) -> None:
    for folder in ("out", "elsewhere"):
        (tmp_path / folder).mkdir()
    (tmp_path / "out" / ".hycal-sort.part").symlink_to(tmp_path / "elsewhere")
    _, problems = run(tmp_path, [image(tmp_path, "1.jpg")])
    assert "is a link" in problems[0].reason and not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("change", ["remove", "edit", "link"])
def test_a_copy_stays_where_it_is_the_last_one(tmp_path: Path, change: str) -> None:
    run(tmp_path, [image(tmp_path, "1.jpg")])
    original, copy = tmp_path / "pile/1.jpg", tmp_path / "out/x/cat/1.jpg"
    original.write_text("edited") if change == "edit" else original.unlink()
    if change == "link":
        original.symlink_to(copy)
    _, problems = undo_sort(tmp_path / "out")
    assert len(problems) == 1 and copy.read_text() == "1.jpg"


def test_a_moved_image_that_a_link_leads_to_stays(tmp_path: Path) -> None:
    run(tmp_path, [image(tmp_path, "1.jpg")], way="move")
    (tmp_path / "pile/1.jpg").symlink_to(tmp_path / "out/x/cat/1.jpg")
    _, problems = undo_sort(tmp_path / "out")
    assert "through a link" in problems[0].reason and (tmp_path / "out/x/cat/1.jpg").read_text() == "1.jpg"


def test_a_move_that_fails_leaves_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.parent.name == "pile":
            raise PermissionError(errno.EACCES, "Permission denied")
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    _, problems = run(tmp_path, [image(tmp_path, "1.jpg")], way="move")
    assert problems[0].reason == "Permission denied" and names(tmp_path) == set()


def test_a_manifest_is_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / NAME)
    with pytest.raises(HyCalError, match="is a link, a pipe or a folder"):
        undo_sort(tmp_path)


def test_a_folder_is_not_sorted_into_itself(tmp_path: Path) -> None:
    image(tmp_path, "1.jpg")
    for out in ("pile/out", "."):
        with pytest.raises(HyCalError, match="lie in each other"):
            new_manifest(tmp_path / "pile", tmp_path / out, way="copy", layout="folders", csv=False)
    with pytest.raises(HyCalError, match=f"has no {NAME}"):
        undo_sort(tmp_path / "pile")
