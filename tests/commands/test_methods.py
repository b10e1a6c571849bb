"""`hycal methods`: every method on the images of a model."""

from __future__ import annotations

from tests.support.commands import hycal, hycal_error, hycal_json

QUICK = ("--only", "HyCal", "--only", "HierarchicalHyCal", "--only", "ZeroShot")


def test_methods_are_tried_on_the_images_of_the_model(learned):
    before = learned.path.read_bytes()
    tried = hycal_json("methods", learned.path, *QUICK)
    assert tried["method"] == "HierarchicalHyCal" and {entry["method"] for entry in tried["methods"]} == set(
        QUICK[1::2]
    )
    assert tried["methods"][0]["total"] == 36 and "text" in tried["methods"][-1]["problem"]
    assert learned.path.read_bytes() == before


def test_people_read_a_table(learned):
    said = hycal("methods", learned.path, *QUICK)
    assert "HierarchicalHyCal (this model)" in said and "on new images" in said and "ZeroShot not tried" in said
    assert "no method is better beyond chance" in said or " is better beyond chance" in said


def test_an_unknown_method_is_refused(learned):
    assert "There is no method 'Guess'" in hycal_error("methods", learned.path, "--only", "Guess")


def test_a_method_is_tried_once_however_it_is_written(learned):
    tried = hycal_json("methods", learned.path, "--only", "ncm", "--only", "NCM")
    assert [entry["method"] for entry in tried["methods"]] == ["NCM"]
