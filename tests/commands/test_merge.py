"""`hycal merge`: one model of two."""

from __future__ import annotations

import pytest

from tests.support.commands import hycal, hycal_error, hycal_json


@pytest.fixture
def tall_model(photos, tmp_path):
    hycal_json("learn", tmp_path / "tall.hycal", photos / "high", "--domain", "tall")
    return tmp_path / "tall.hycal"


def test_the_new_model_learned_what_both_did(low_model, tall_model, learned, tmp_path):
    merged = hycal_json("merge", low_model, tall_model, "--out", tmp_path / "both.hycal")
    assert merged["images"] == {"tall/7": 6, "tall/8": 6, "tall/9": 6}
    assert merged["after"] == learned.tall["after"]


def test_the_merge_can_be_undone(low_model, tall_model, tmp_path):
    hycal("merge", low_model, tall_model, "--out", tmp_path / "both.hycal")
    assert "can be undone" in hycal("info", tmp_path / "both.hycal")
    assert hycal_json("undo", tmp_path / "both.hycal")["after"] == hycal_json("info", low_model)["hash"]


def test_an_image_that_both_know_counts_once(learned, low_model, tmp_path):
    assert not hycal_json("merge", learned.path, low_model, "--out", tmp_path / "both.hycal")["changed"]


def test_a_file_is_never_replaced(model):
    before = model.read_bytes()
    assert "exists already" in hycal_error("merge", model, model, "--out", model)
    assert model.read_bytes() == before
