"""`hycal learn`: folders of images become classes of a model."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import typer

from hycal import load
from hycal.commands import _output
from hycal.commands._options import complete_encoder, complete_method
from tests.support.commands import hycal, hycal_error, hycal_json, run_hycal


def test_a_folder_of_class_folders_becomes_classes(learned):
    assert learned.low["images"] == {"low/0": 6, "low/1": 6, "low/2": 6}
    assert not learned.low["skipped"] and learned.low["changed"]


def test_the_domain_can_be_named(learned):
    assert learned.tall["images"] == {"tall/7": 6, "tall/8": 6, "tall/9": 6}


def test_a_file_that_is_no_image_is_skipped_with_its_reason(learned):
    assert [item["reason"] for item in learned.tall["skipped"]] == ["not an image of a known format"]


def test_an_image_that_the_model_knows_is_not_counted_twice(model, photos):
    again = hycal_json("learn", model, photos / "low")
    assert not again["changed"] and len(again["skipped"]) == 18


def test_the_model_is_a_classifier_of_the_library(learned):
    assert load(learned.path).counts_.tolist() == [6] * 6


def test_people_read_a_receipt(photos, tmp_path):
    said = hycal("learn", tmp_path / "new.hycal", photos / "low").splitlines()
    assert said[0] == "learn: 18 images of 3 classes (low/0, low/1, low/2)"
    assert said[1].endswith("new.hycal: 3 classes, 18 images")
    assert re.fullmatch("model [0-9a-f]{12} before, [0-9a-f]{12} after", said[2])


def test_people_read_what_was_embedded_and_one_image_is_one(photos, tmp_path):
    (tmp_path / "one" / "cat").mkdir(parents=True)
    shutil.copy(min((photos / "low" / "0").iterdir()), tmp_path / "one" / "cat")
    fresh = ("--cache", tmp_path / "cache")
    first = run_hycal("learn", tmp_path / "new.hycal", tmp_path / "one", *fresh)
    assert "1 file embedded" in first.stderr and "new.hycal: 1 class, 1 image" in first.stdout
    again = run_hycal("learn", tmp_path / "two.hycal", tmp_path / "one", *fresh).stderr
    assert "0 files embedded" in again and "1 embedded before" in again


def test_of_two_encoders_it_says_which_one_embedded_before(photos, tmp_path):
    fresh = ("--cache", tmp_path / "cache")
    hycal("learn", tmp_path / "one.hycal", photos / "low", *fresh)
    two = run_hycal("learn", tmp_path / "two.hycal", photos / "low", *fresh, "--encoder", "builtin+builtin:flip")
    assert "18 files embedded with builtin:flip in" in two.stderr
    assert "18 by builtin and 0 by builtin:flip embedded before" in two.stderr
    again = run_hycal("learn", tmp_path / "new.hycal", photos / "low", *fresh, "--encoder", "builtin+builtin:flip")
    assert "0 files embedded with builtin+builtin:flip" in again.stderr and ", 18 embedded before" in again.stderr


def test_strict_ends_with_code_3_after_learning(photos, tmp_path):
    hycal("learn", tmp_path / "new.hycal", photos / "high", "--strict", code=3)
    assert load(tmp_path / "new.hycal").counts_.tolist() == [6] * 3


def test_a_class_folder_that_is_a_link_is_learned(photos, tmp_path):
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "1").symlink_to(photos / "low" / "1")
    (tmp_path / "linked" / "2").symlink_to(photos / "low" / "1")
    receipt = hycal_json("learn", tmp_path / "m.hycal", tmp_path / "linked")
    assert receipt["images"] == {"linked/1": 6}
    (skipped,) = receipt["skipped"]
    assert skipped["file"] == str(tmp_path / "linked" / "2") and "not followed" in skipped["reason"]


def test_the_classes_are_printed_before_they_are_learned(photos, tmp_path):
    said = run_hycal("learn", tmp_path / "new.hycal", photos / "low").stderr
    assert "3 classes, 18 images to learn" in said and "  low: 0 6, 1 6, 2 6" in said
    assert run_hycal("learn", tmp_path / "other.hycal", photos / "low", "--quiet").stderr == ""


def test_a_dry_run_says_what_would_be_learned_and_learns_nothing(photos, tmp_path):
    said = run_hycal("learn", tmp_path / "new.hycal", photos / "low", "--dry-run")
    assert said.exit_code == 0 and "3 classes, 18 images to learn" in said.stderr and not said.stdout
    found = hycal_json("learn", tmp_path / "new.hycal", photos / "low", "--dry-run")
    assert found == {"classes": {"low/0": 6, "low/1": 6, "low/2": 6}, "doubts": [], "skipped": []}
    assert not list(tmp_path.iterdir())


@pytest.fixture
def doubtful(photos, tmp_path):
    """A folder with images below a class, and a class called train."""
    shutil.copytree(photos / "low" / "0", tmp_path / "set" / "zero")
    shutil.copytree(photos / "low" / "1", tmp_path / "set" / "zero" / "old", ignore=lambda _, names: sorted(names)[1:])
    shutil.copytree(photos / "low" / "2", tmp_path / "set" / "train")
    return tmp_path / "set"


@pytest.mark.parametrize(("options", "answer", "code"), [((), "n", 1), ((), "y", 0), (("--yes",), "", 0)])
def test_a_person_is_asked_where_the_folders_are_doubtful(doubtful, tmp_path, monkeypatch, options, answer, code):
    asked = []
    monkeypatch.setattr(_output, "is_watched", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda text, **how: asked.append(text) or answer == "y")
    said = run_hycal("learn", tmp_path / "m.hycal", doubtful, *options)
    assert said.exit_code == code and len(asked) == (0 if options else 1)
    assert "set/train: a class called like a split" in said.stderr
    assert "set/zero: some images are in folders below it, such as zero/old/" in said.stderr
    assert (tmp_path / "m.hycal").exists() == (code == 0)


def test_where_nobody_can_answer_nobody_is_asked(doubtful, tmp_path):
    assert hycal_json("learn", tmp_path / "m.hycal", doubtful)["images"] == {"set/train": 6, "set/zero": 7}


@pytest.mark.parametrize(
    ("folder", "options", "message"),
    [
        ("nowhere", (), "does not exist"),
        ("empty", (), "no files"),
        ("flat", (), "no images in class folders"),
        ("broken", (), "None of the 1 files can be used"),
        ("high", ("--encoder", "clip-vit-b16"), "learned with encoder 'builtin'"),
        ("high", ("--method", "NCM"), "is a HierarchicalHyCal model"),
        ("low", ("--domain", "a/b"), "nor contain a slash"),
    ],
)
def test_an_error_says_what_to_do_and_changes_nothing(model, photos, tmp_path, broken_image, folder, options, message):
    (tmp_path / "empty").mkdir()
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "x.txt").write_text("no")
    before = model.read_bytes()
    where = photos if folder in ("low", "high") else tmp_path
    assert message in hycal_error("learn", model, where / folder, *options)
    assert model.read_bytes() == before


def test_methods_and_encoders_are_named_in_any_case(photos, tmp_path):
    hycal("learn", tmp_path / "new.hycal", photos / "low", "--method", "ncm", "--encoder", "Builtin")
    again = ("learn", tmp_path / "new.hycal", photos / "test", "--method", "Ncm", "--encoder", "BUILTIN")
    assert hycal_json(*again)["changed"]
    info = hycal_json("info", tmp_path / "new.hycal")
    assert (info["method"], info["encoder"]) == ("NCM", "builtin")


def test_shells_complete_methods_and_encoders():
    assert complete_method("hy") == ["HyCal"] and complete_method("slda") == ["SLDA"]
    assert "clip-vit-b16" in complete_encoder("CLIP-") and "builtin" not in complete_encoder("CLIP-")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--encoder", "nonsense"), "There is no encoder"),
        (("--method", "Best"), "There is no method 'Best'"),
        (("--method", "hykal"), "Did you mean 'HyCal'?"),
    ],
)
def test_a_wrong_name_is_refused_before_the_folder_is_read(photos, tmp_path, options, message):
    for folder in (photos / "low", tmp_path / "nowhere"):
        assert message in hycal_error("learn", tmp_path / "new.hycal", folder, *options)
    assert not Path(tmp_path / "new.hycal").exists()
