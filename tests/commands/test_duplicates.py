"""`hycal duplicates`: copies, and pictures that are nearly the same."""

from __future__ import annotations

import shutil

from PIL import Image

from tests.support.commands import hycal, hycal_error, hycal_json


def test_copies_and_retouched_pictures_are_found(photos, tmp_path):
    pile = tmp_path / "pile"
    shutil.copytree(photos / "low", pile)
    first, second = sorted((pile / "0").iterdir())[:2]
    shutil.copy(first, pile / "copy.png")
    with Image.open(second) as image:
        image.putpixel((0, 0), 9)
        image.save(pile / "again.png")
    groups = hycal_json("duplicates", pile, "--distance", 0.01)["groups"]
    found = {frozenset(member["file"] for member in group) for group in groups}
    assert any({f"0/{first.name}", "copy.png"} <= group for group in found)
    assert any({f"0/{second.name}", "again.png"} <= group for group in found)
    assert "the same file" in hycal("duplicates", pile)


def test_different_pictures_are_none(photos):
    assert "0 groups" in hycal("duplicates", photos / "test", "--distance", 0.0001)


def test_a_distance_of_nonsense_is_refused(photos):
    assert "expected one between 0" in hycal_error("duplicates", photos / "test", "--distance", 3)
