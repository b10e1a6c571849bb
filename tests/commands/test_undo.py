"""`hycal undo`: the last change is taken back."""

from __future__ import annotations

from tests.support.commands import hycal, hycal_error, hycal_json


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
