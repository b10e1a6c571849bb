"""`hycal advise`: weak classes, near-duplicates and doubtful images."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from PIL import Image

from examples.photos import write_digits
from hycal.commands import advise
from hycal.project.advice import ENCODER_HINT
from tests.support.commands import hycal, hycal_error, hycal_json
from tests.support.encoders import TinyEncoder


class CornerEncoder(TinyEncoder):
    """An encoder that sees one corner of an image, and hardly anything else."""

    def preprocess(self, image):
        rest = np.array(image.getpixel((1, 1)), np.float32) / 1000
        return np.eye(3, dtype=np.float32)[image.getpixel((0, 0))[0] // 100] + rest

    def encode(self, batch):
        return batch / np.linalg.norm(batch, axis=1, keepdims=True)


@pytest.fixture
def muddled(tmp_path):
    """A model of noise, whose classes differ in one pixel, and the folder that it learned."""
    rng, folder = np.random.default_rng(0), tmp_path / "noise"
    for label in range(3):
        (folder / str(label)).mkdir(parents=True)
        for number in range(12):
            pixels = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
            pixels[0, 0] = 100 * label
            Image.fromarray(pixels).save(folder / str(label) / f"{number}.png")
    hycal("learn", tmp_path / "noise.hycal", folder)
    return tmp_path / "noise.hycal", folder


def test_every_class_and_every_image_is_judged(learned):
    advice = hycal_json("advise", learned.path)
    assert advice["overall"]["total"] == 36 and len(advice["classes"]) == 6


def test_people_read_an_interval_for_the_model_and_for_each_class(learned):
    overall = hycal_json("advise", learned.path)["overall"]["estimate"]
    said = hycal("advise", learned.path)
    assert f"estimated accuracy on new images like these: {overall['low']:.0%} to {overall['high']:.0%}" in said
    assert "leave-one-out" in said and "estimate" in said


def test_near_duplicates_are_named(learned, photos, tmp_path):
    for number, image in enumerate(sorted((photos / "low" / "0").iterdir())[:2]):
        pixels = np.asarray(Image.open(image).convert("RGB")).astype(int)
        for shift in (1, 2):
            (tmp_path / "low" / "0").mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.clip(pixels + shift, 0, 255).astype(np.uint8)).save(
                tmp_path / "low" / "0" / f"burst{number}-{shift}.png"
            )
    copy = tmp_path / "copy.hycal"
    shutil.copy(learned.path, copy)
    hycal("learn", copy, tmp_path / "low", "--domain", "low")
    groups = hycal_json("advise", copy)["near_duplicates"]
    assert sorted(len(group["files"]) for group in groups)[-2:] == [3, 3]
    assert "near-duplicates of low/0, judged as one: " in hycal("advise", copy)


def test_strict_ends_with_code_3_if_an_image_looks_mislabelled(learned, tmp_path):
    hycal("advise", learned.path, "--strict")
    write_digits(tmp_path / "right", [1], first=6, images=1)
    (tmp_path / "right" / "1").rename(tmp_path / "right" / "0")
    copy = tmp_path / "copy.hycal"
    shutil.copy(learned.path, copy)
    hycal("learn", copy, tmp_path / "right", "--domain", "low")
    suspects = hycal_json("advise", copy)["suspects"]
    assert [(one["label"], one["looks_like"]) for one in suspects] == [("low/0", "low/1")]
    said = hycal("advise", copy, "--strict", code=3)
    assert f"mislabelled?: {suspects[0]['file']}: learned as low/0, looks like low/1" in said


def test_a_model_that_is_not_good_is_told_where_encoders_are_measured(muddled):
    assert ENCODER_HINT in hycal_json("advise", muddled[0])["hints"]


def test_other_encoders_are_measured_on_a_sample_of_the_learned_folder(muddled, monkeypatch):
    model, folder = muddled
    monkeypatch.setattr(advise, "other_encoders", lambda state: ["tiny"])
    monkeypatch.setattr(
        "hycal.commands._encoder_trials.load_encoder", lambda name, **options: CornerEncoder(seed=9, dimension=3)
    )
    found = hycal_json("advise", model, "--images", folder)
    (trial,) = found["encoders"]
    assert trial["better"] and trial["own"]["total"] == trial["other"]["total"] == 36 == trial["other"]["right"]
    assert ENCODER_HINT not in found["hints"]
    said = " ".join(hycal("advise", model, "--images", folder).split())
    assert "hint: tiny-9 is better beyond chance than builtin: 100.0% (36 of 36) against " in said
    assert f"hint: to change: hycal learn NEW.hycal {folder} --encoder tiny-9" in said


def test_advice_stays_where_no_other_encoder_is_installed(muddled):
    model, folder = muddled
    found = hycal_json("advise", model, "--images", folder)
    assert found["encoders"] == [] and "No encoder but builtin is installed" in found["hints"][-1]
    assert "does not exist" in hycal_error("advise", model, "--images", folder / "elsewhere")
