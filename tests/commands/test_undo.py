"""`hycal undo` and `hycal redo`: the last change is taken back, and made again."""

from __future__ import annotations

import pytest
import typer

from hycal.commands import _output
from tests.support.commands import hycal, hycal_error, hycal_json, run_hycal


def test_the_model_is_that_of_before_the_change(model, learned, photos):
    hycal("correct", model, min((photos / "test" / "low" / "0").iterdir()), "low/new")
    assert hycal_json("undo", model)["after"] == learned.tall["after"]


def test_each_call_takes_back_one_change(model, learned):
    assert hycal_json("undo", model)["after"] == learned.tall["before"]
    assert hycal_json("undo", model)["after"] == learned.low["before"]


def test_without_a_change_there_is_nothing_to_undo(model):
    hycal("undo", model)
    hycal("undo", model)
    assert "undo" in hycal_error("undo", model)


def test_it_says_what_it_takes_back(model):
    assert "Took back the learning of 18 images of 3 classes." in hycal("undo", model)


def test_redo_makes_the_changes_again_one_by_one(model, learned):
    hycal("undo", model)
    hycal("undo", model)
    assert hycal_json("redo", model)["after"] == learned.low["after"]
    redone = hycal_json("redo", model)
    assert redone["after"] == learned.tall["after"] and redone["what"] == "learn: 18 images of 3 classes"
    assert "nothing to redo" in hycal_error("redo", model)
    assert "Took back the learning of 18 images of 3 classes." in hycal("undo", model)
    assert hycal_json("info", model)["hash"] == learned.low["after"]


def test_another_change_leaves_nothing_to_redo(model):
    hycal("undo", model)
    hycal("rename", model, "low", "small")
    assert "nothing to redo" in hycal_error("redo", model)


def test_what_was_forgotten_for_good_cannot_be_made_again(model):
    hycal("undo", model)
    hycal("forget", model, "tall/8", "--for-good")
    assert "nothing to redo" in hycal_error("redo", model)


@pytest.mark.parametrize("command", [("undo",), ("forget", "low")])
def test_a_person_is_asked_before_nothing_is_left(low_model, monkeypatch, command):
    before = low_model.read_bytes()
    monkeypatch.setattr(_output, "is_watched", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda text, **how: "Nothing will be left" not in text)
    name, *what = command
    assert run_hycal(name, low_model, *what).exit_code == 1 and low_model.read_bytes() == before
    assert run_hycal(name, low_model, *what, "--yes").exit_code == 0 and low_model.read_bytes() != before
