"""`hycal classes`: the classes of a model."""

from __future__ import annotations

from tests.support.commands import hycal, hycal_error, hycal_json


def test_every_class_has_its_domain_and_images(learned):
    entries = hycal_json("classes", learned.path)
    assert [entry["images"] for entry in entries] == [6] * 6
    assert [(entry["label"], entry["domain"]) for entry in entries][::3] == [("low/0", "low"), ("tall/7", "tall")]


def test_people_read_a_table(learned):
    head, *lines = hycal("classes", learned.path).splitlines()
    assert head.split() == ["class", "domain", "images"]
    assert [line.split() for line in lines][-1] == ["tall/9", "tall", "6"] and len(lines) == 6


def test_a_model_that_is_not_there(tmp_path):
    assert "There is no model at" in hycal_error("classes", tmp_path / "none.hycal")
