"""`hycal evaluate`: the accuracy of a model on labelled images."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.commands import hycal, hycal_error, hycal_json, run_hycal


def test_the_accuracy_is_that_of_the_answers(learned, photos):
    tested = hycal_json("evaluate", learned.path, photos / "test")
    lines = hycal("predict", learned.path, photos / "test", "--top", "1", "--json").splitlines()
    right = sum(
        answer["answers"][0]["label"] == f"low/{Path(answer['file']).parent.name}" for answer in map(json.loads, lines)
    )
    assert tested["overall"] == {"right": right, "total": 6, "accuracy": right / 6}
    assert tested["shots"] == {"5-9": tested["overall"]} and tested["learned_before"] == 0


def test_learned_images_are_counted(learned, photos):
    assert hycal_json("evaluate", learned.path, photos / "low")["learned_before"] == 18
    assert "18 of these images were learned" in hycal("evaluate", learned.path, photos / "low")


def test_people_read_tables(learned, photos):
    said = hycal("evaluate", learned.path, photos / "test")
    assert said.startswith("accuracy ") and "images per class" in said and "learned from" in said


def test_a_terminal_shows_progress_unless_it_should_be_quiet(learned, photos, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal shows no progress
    asked = ("evaluate", learned.path, photos / "test")
    assert "embedding" in run_hycal(*asked, "--cache", tmp_path / "one").stderr
    assert not run_hycal(*asked, "--quiet", "--cache", tmp_path / "two").stderr


def test_strict_ends_with_code_3_if_a_file_was_skipped(learned, photos):
    hycal("evaluate", learned.path, photos / "high", "--domain", "tall", "--strict", code=3)


def test_a_model_of_the_library_has_labels_without_domains(library_model, photos):
    tested = hycal_json("evaluate", library_model, photos / "test", "--encoder", "builtin")
    assert tested["overall"]["total"] == 6


def test_images_of_other_classes_are_no_test(low_model, photos):
    assert "belongs to a class of the model" in hycal_error("evaluate", low_model, photos / "high")
