"""A session of the command line on real images: every change follows the ones before it."""

from __future__ import annotations

import pytest

from examples.photos import write_digits
from hycal import load
from tests.support.commands import hycal, hycal_json


@pytest.fixture
def session(tmp_path, monkeypatch):
    """A folder with images and a cache of its own, in which the session runs."""
    write_digits(tmp_path / "low", range(3), first=0, images=6)
    write_digits(tmp_path / "high", range(7, 10), first=0, images=6)
    write_digits(tmp_path / "new", [0], first=50, images=1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_a_session(session):
    hycal("learn", "digits.hycal", "low")
    hycal("learn", "digits.hycal", "high", "--domain", "tall")
    hycal("correct", "digits.hycal", next((session / "new" / "0").iterdir()), "low/new")
    hycal("undo", "digits.hycal")
    hycal("forget", "digits.hycal", "tall")
    hycal("forget", "digits.hycal", min((session / "low" / "0").iterdir()), "--for-good")
    actions = [entry["action"] for entry in hycal_json("info", "digits.hycal", "--history", "100")["history"]]
    assert actions == ["learn", "learn", "correct", "undo", "forget", "forget"]

    hycal("rename", "digits.hycal", "low", "small")
    hycal("learn", "tall.hycal", "high", "--domain", "tall")
    hycal("merge", "digits.hycal", "tall.hycal", "--out", "both.hycal")
    info = hycal_json("info", "both.hycal")
    assert info["domains"] == {"small": {"classes": 3, "images": 17}, "tall": {"classes": 3, "images": 18}}
    assert [entry["action"] for entry in info["history"]][-2:] == ["rename", "merge"]
    assert load("both.hycal").counts_.tolist() == [5, 6, 6, 6, 6, 6]
