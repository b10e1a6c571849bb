"""`hycal find`: images like an image, of a class, or of words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hycal.encoders.encoder import TowerEncoder
from hycal.project import Project
from tests.support.commands import hycal, hycal_error, hycal_json


def test_images_like_an_image_come_without_the_image_itself(learned, photos):
    image = min((photos / "low" / "0").iterdir())
    found = hycal_json("find", learned.path, photos / "low", image, "--most", 4)
    files = [item["file"] for item in found["images"]]
    assert found["kind"] == "image" and len(files) == 4 and f"0/{image.name}" not in files
    assert sum(file.startswith("0/") for file in files) >= 3
    values = [item["value"] for item in found["images"]]
    assert values == sorted(values, reverse=True)


def test_images_of_a_class(learned, photos):
    found = hycal_json("find", learned.path, photos / "low", "low/2", "--most", 6)
    assert found["kind"] == "class" and all(item["file"].startswith("2/") for item in found["images"])
    assert hycal("find", learned.path, photos / "low", "low/2", "--most", 1, "-q").strip().endswith("%")


def test_images_that_fit_no_class_are_marked(learned, photos, monkeypatch):
    monkeypatch.setattr("hycal.pile.search.unlike_anything", lambda rows, classifier: np.arange(len(rows)) == 1)
    found = hycal_json("find", learned.path, photos / "low", "low/2", "--most", 3)["images"]
    assert [item["unknown"] for item in found] == [False, True, False]
    lines = hycal("find", learned.path, photos / "low", "low/2", "--most", 3, "-q").splitlines()
    assert ["unlike anything learned" in line for line in lines] == [False, True, False]


def test_the_only_class_has_no_probability(low_model, photos):
    for label in ("low/1", "low/2"):
        hycal("forget", low_model, label, "--yes")
    lines = hycal("find", low_model, photos / "low", "low/0", "-q").splitlines()
    assert lines and all(": the only class" in line and "%" not in line for line in lines)


def test_words_need_a_text_tower(learned, low_model, photos):
    error = hycal_error("find", learned.path, photos / "low", "a red car")
    assert "has no text tower" in error and "low/0" in error and ", ...)" in error
    hycal("rename", low_model, "low/0", "azalea")
    assert "Did you mean 'low/azalea'?" in hycal_error("find", low_model, photos / "low", "azlea")
    hycal("undo", low_model)
    assert "(low/0, low/1, low/2)" in hycal_error("find", low_model, photos / "low", "a red car")


def test_words_are_compared_with_images(learned, photos, monkeypatch):
    """Where an encoder gives the words the embedding of an image, that image is found first."""
    state = Project(learned.path).state
    example = state.classes["low/1"].examples[0]
    always = property(lambda self: True, lambda self, value: None)
    monkeypatch.setattr(TowerEncoder, "has_text", always, raising=False)
    monkeypatch.setattr(TowerEncoder, "encode_texts", lambda self, texts: example.row[None] * len(texts[0]))
    found = hycal_json("find", learned.path, photos / "low", "a red car", "--most", 2)
    assert found["kind"] == "text" and Path(found["images"][0]["file"]).name == Path(example.name).name
    assert found["images"][0]["value"] == pytest.approx(1.0, abs=1e-5)


def test_an_image_that_cannot_be_read(learned, photos, broken_image):
    assert "cannot be used" in hycal_error("find", learned.path, photos / "low", broken_image)
