"""`hycal diff`: what two models have in common, and what not."""

from __future__ import annotations

from tests.support.commands import hycal, hycal_json


def test_a_model_equals_its_copy(learned, model):
    assert hycal_json("diff", learned.path, model)["equal"]
    assert hycal("diff", learned.path, model, "--strict") == "the models are equal\n"


def test_strict_ends_with_code_3_if_the_models_differ(model, learned, photos):
    hycal("forget", model, min((photos / "low" / "0").iterdir()))
    said = hycal("diff", model, learned.path, "--strict", code=3)
    assert f"low/0: 0 images only in {model}, 1 only in {learned.path}, 5 in both" in said
    assert "5 classes are the same in both" in said


def test_classes_of_one_model_alone(learned, low_model):
    found = hycal_json("diff", learned.path, low_model)
    assert found["only_first"] == {"tall/7": 6, "tall/8": 6, "tall/9": 6} and found["only_second"] == {}
    assert found["same_classes"] == 3 and not found["equal"]
    assert f"tall/7: only in {learned.path}, 6 images" in hycal("diff", learned.path, low_model)
