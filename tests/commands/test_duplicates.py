"""`hycal duplicates`: copies, and pictures that are nearly the same."""

from __future__ import annotations

import shutil

from PIL import Image
from sklearn.datasets import load_sample_image

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


def test_a_smaller_and_a_coarser_copy_are_found_and_nothing_else(tmp_path):
    pile = tmp_path / "pile"
    pile.mkdir()
    for number in range(6):
        photo = load_sample_image(("china.jpg", "flower.jpg")[number % 2])
        Image.fromarray(photo[100 * (number // 2) :][:200, 80 * number :][:, :220]).save(pile / f"{number}.png")
    with Image.open(pile / "2.png") as image:
        image.resize((110, 100)).save(pile / "2-small.jpg")
        image.save(pile / "2-coarse.jpg", quality=40)
    (group,) = hycal_json("duplicates", pile)["groups"]
    assert {member["file"] for member in group} == {"2.png", "2-small.jpg", "2-coarse.jpg"}
