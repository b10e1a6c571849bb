"""`hycal advise`: weak classes and doubtful images, by leave-one-out."""

from __future__ import annotations

from tests.support.commands import hycal, hycal_json


def test_every_class_and_every_image_is_judged(learned):
    advice = hycal_json("advise", learned.path)
    assert advice["overall"]["total"] == 36 and len(advice["classes"]) == 6


def test_people_read_the_leave_one_out_accuracy_of_each_class(learned):
    said = hycal("advise", learned.path)
    assert "leave-one-out accuracy" in said and "estimated accuracy on new images like these: " in said


def test_strict_ends_with_code_3_if_an_image_looks_mislabelled(learned):
    suspects = hycal_json("advise", learned.path)["suspects"]
    said = hycal("advise", learned.path, "--strict", code=3)
    assert suspects and all(
        f"mislabelled?: {suspect['file']}: learned as {suspect['label']}, looks like {suspect['looks_like']}" in said
        for suspect in suspects
    )
