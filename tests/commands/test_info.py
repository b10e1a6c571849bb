"""`hycal info`: all about a model, and its history."""

from __future__ import annotations

import pytest

from tests.support.commands import hycal, hycal_json

ALL = ["learn", "learn", "rename"]


def test_the_facts_of_a_model(learned):
    info = hycal_json("info", learned.path)
    assert info["domains"] == {"low": {"classes": 3, "images": 18}, "tall": {"classes": 3, "images": 18}}
    assert info["method"] == "HierarchicalHyCal" and info["encoder"] == "builtin"
    assert info["bytes"] == learned.path.stat().st_size and info["hash"] == learned.tall["after"]


def test_people_read_one_fact_in_a_line(learned):
    said = hycal("info", learned.path)
    assert f"hash       {learned.tall['after']}" in said.splitlines()
    assert "domain     tall: 3 classes, 18 images" in said.splitlines()
    assert said.count("can be undone") == 2


@pytest.mark.parametrize(("asked", "shown"), [(0, []), (1, ["rename"]), (3, ALL), (4, ALL)])
def test_as_much_of_the_history_as_is_asked_for(model, asked, shown):
    hycal("rename", model, "low", "small")
    assert [entry["action"] for entry in hycal_json("info", model, "--history", asked)["history"]] == shown
