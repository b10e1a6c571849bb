"""`hycal correct`: one image is learned under another label."""

from __future__ import annotations

import json

import pytest
import typer

from hycal.commands import learn
from tests.support.commands import hycal, hycal_error, hycal_json


@pytest.fixture
def image(photos):
    """An image that no model has learned."""
    return min((photos / "test" / "low" / "1").iterdir())


def test_a_corrected_image_is_classified_as_its_new_label(model, image):
    hycal("correct", model, image, "low/new")
    assert json.loads(hycal("predict", model, image, "--json"))["answers"][0]["label"] == "low/new"


def test_a_learned_image_moves_to_its_new_class(model, photos):
    hycal("correct", model, min((photos / "low" / "0").iterdir()), "low/1")
    images = {entry["label"]: entry["images"] for entry in hycal_json("classes", model)}
    assert (images["low/0"], images["low/1"]) == (5, 7)


def test_a_model_of_the_library_has_labels_without_domains(library_model, image):
    corrected = hycal_json("correct", library_model, image, "1", "--encoder", "builtin")
    assert corrected["images"] == {"1": 1}


def test_the_class_alone_is_enough_where_one_domain_has_it(model, image):
    assert hycal_json("correct", model, image, "8")["images"] == {"tall/8": 1}


def test_a_new_class_needs_its_domain(model, image, monkeypatch):
    message = hycal_error("correct", model, image, "zero")
    assert "name its domain too: low/zero. Domains so far: low, tall." in message
    assert "Did you mean" not in message
    hycal("rename", model, "low/0", "low/zero-point")
    assert "Did you mean 'low/zero-point'?" in hycal_error("correct", model, image, "Zero-Pont")
    monkeypatch.setattr(learn, "is_watched", lambda: True)
    monkeypatch.setattr(typer, "prompt", lambda text, **how: "tall")
    assert hycal_json("correct", model, image, "zero")["images"] == {"tall/zero": 1}


def test_a_folder_is_no_image(model, photos):
    assert "is a folder. Name one image" in hycal_error("correct", model, photos / "low", "low/0")


def test_a_file_that_is_no_image_is_refused(model, broken_image):
    before = model.read_bytes()
    assert "cannot be used" in hycal_error("correct", model, broken_image, "low/0")
    assert model.read_bytes() == before
