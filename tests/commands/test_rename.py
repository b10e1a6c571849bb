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


def test_a_name_that_is_taken_is_refused(low_model):
    before = low_model.read_bytes()
    assert "low/1" in hycal_error("rename", low_model, "low/0", "low/1")
    assert low_model.read_bytes() == before
