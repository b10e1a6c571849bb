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


def test_a_model_that_lacks_a_view_of_the_other_is_told_how_to_get_it(photos, low_model, tmp_path, monkeypatch):
    """Fingerprints are shown only where names are the same."""
    monkeypatch.chdir(tmp_path)
    hycal("learn", "two.hycal", photos / "low", "--encoder", "builtin+builtin:flip")
    hycal("learn", "flip.hycal", photos / "low", "--encoder", "builtin:flip")
    add, out = "`hycal views low.hycal --add builtin:flip --images FOLDER`", ("--out", "both.hycal")
    for pair in (("two.hycal", "low.hycal"), ("low.hycal", "two.hycal")):
        assert f"Add it first: {add}" in hycal_error("merge", *pair, *out)
    hycal("seal", "two.hycal", "--out", "both-sealed.hycal")
    assert "merge that one into this one" in hycal_error("merge", "low.hycal", "both-sealed.hycal", *out)
    assert "it has no images" in hycal_error("views", "both-sealed.hycal", "--add", "dinov2-s")
    hycal("seal", "low.hycal", "--out", "sealed.hycal")
    assert "the model that it was sealed from can" in hycal_error("merge", "sealed.hycal", "two.hycal", *out)
    for other in ("low.hycal", "sealed.hycal"):
        apart = hycal_error("merge", other, "flip.hycal", *out)
        assert "(encoder: builtin), the other 512 dimensions (encoder: builtin:flip)" in apart
    assert not (tmp_path / "both.hycal").exists()


def test_a_file_is_never_replaced(model):
    before = model.read_bytes()
    assert "exists already" in hycal_error("merge", model, model, "--out", model)
    assert model.read_bytes() == before
