"""`hycal advise`: weak classes, near-duplicates and doubtful images."""

from __future__ import annotations

import shutil

import numpy as np
from PIL import Image

from tests.support.commands import hycal, hycal_json


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


def test_strict_ends_with_code_3_if_an_image_looks_mislabelled(learned):
    suspects = hycal_json("advise", learned.path)["suspects"]
    said = hycal("advise", learned.path, "--strict", code=3)
    assert suspects and all(
        f"mislabelled?: {suspect['file']}: learned as {suspect['label']}, looks like {suspect['looks_like']}" in said
        for suspect in suspects
    )
