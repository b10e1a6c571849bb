"""`hycal rename`: a class or a domain gets another name."""

from __future__ import annotations

from tests.support.commands import hycal, hycal_error, hycal_json


def labels(model):
    return {entry["label"] for entry in hycal_json("classes", model)}


def test_a_domain_is_renamed(low_model):
    hycal_json("rename", low_model, "low", "small")
    assert labels(low_model) == {"small/0", "small/1", "small/2"}


def test_a_class_is_renamed(low_model):
    hycal("rename", low_model, "low/0", "low/none")
    assert labels(low_model) == {"low/none", "low/1", "low/2"}


def test_a_receipt_says_where_answers_may_change(model, tmp_path):
    """Two domains that become one, and a class in another domain; undo parts them, which a sealed model cannot."""
    hycal("seal", model, "--out", tmp_path / "sealed.hycal")
    before = hycal_json("info", model)["hash"]
    assert "may change" not in hycal("rename", model, "low", "small") + hycal("rename", model, "small/0", "none")
    assert "it is in another domain now, so answers may change" in hycal("rename", model, "tall/7", "small/7")
    said = hycal("rename", model, "tall", "small")
    assert "small was a domain already, and the two are one now, so answers may change" in said
    assert "two are one" not in "".join(hycal("undo", model) for _ in range(4))
    assert hycal_json("info", model)["hash"] == before
    assert "could part the two again" in hycal_error("rename", tmp_path / "sealed.hycal", "tall", "low")
    assert hycal_json("rename", tmp_path / "sealed.hycal", "tall", "long")["what"] == "tall to long"


def test_a_name_that_is_taken_is_refused(low_model):
    before = low_model.read_bytes()
    assert "low/1" in hycal_error("rename", low_model, "low/0", "low/1")
    assert low_model.read_bytes() == before
