"""`hycal discover`: groups among unknown images, and teaching by a name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.commands import hycal, hycal_error, hycal_json, run_hycal


@pytest.fixture
def pile(photos: Path, tmp_path: Path) -> Path:
    """Images of digits that were learned, and six of one that was not."""
    shutil.copytree(photos / "test" / "low", tmp_path / "pile" / "known")
    shutil.copytree(photos / "high" / "7", tmp_path / "pile" / "new")
    return tmp_path / "pile"


def test_a_group_is_shown_and_learned_by_its_name(low_model, pile):
    groups = hycal_json("discover", low_model, pile, "--error", 0.3)["groups"]
    assert groups, "images of a new digit are a group"
    own = groups[0]["files"]
    assert sum(file.startswith("new/") for file in own) >= 0.7 * len(own)
    printed = hycal("discover", low_model, pile, "--error", 0.3, "--most", 1)
    assert f"group 0: {len(own)} images, alike" in printed and f"typical: {pile / own[0]}" in printed
    receipt = hycal_json("discover", low_model, pile, "--error", 0.3, "--name", "0=tall/seven")
    assert receipt["images"] == {"tall/seven": len(own)} and receipt["undoable"]
    assert "tall/seven" in hycal("classes", low_model)


def test_no_group_has_its_reason(learned, photos):
    said = run_hycal("discover", learned.path, photos / "low").output
    assert "0 groups of 0 of" in said and "too few images that fit no learned class" in said


def test_without_a_model_everything_is_grouped(photos, tmp_path):
    found = hycal_json("discover", tmp_path / "none.hycal", photos / "test")
    assert sum(len(group["files"]) for group in found["groups"]) == 6
    hycal("discover", tmp_path / "new.hycal", photos / "test", "--name", "0=a/b")  # makes the model
    assert "a/b" in hycal("classes", tmp_path / "new.hycal")
    missing = hycal_error("discover", tmp_path / "other.hycal", photos / "test", "--name", "9=a/b")
    assert "There is no group 9" in missing and not (tmp_path / "other.hycal").exists()


def test_wrong_names_change_nothing(low_model, pile):
    before = low_model.read_bytes()
    assert "There is no group 99" in hycal_error("discover", low_model, pile, "--name", "99=a/b")
    assert "expected domain/class" in hycal_error("discover", low_model, pile, "--name", "0=b")
    assert run_hycal("discover", low_model, pile, "--name", "zero").exit_code == 2
    assert low_model.read_bytes() == before
