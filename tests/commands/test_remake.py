"""`hycal remake`: the same images under another method."""

from __future__ import annotations

from tests.support.commands import hycal_error, hycal_json


def test_the_new_model_has_the_other_method_and_the_old_one_stays(learned, tmp_path):
    before = learned.path.read_bytes()
    remade = hycal_json("remake", learned.path, "hycal", "--out", tmp_path / "other.hycal")
    info = hycal_json("info", tmp_path / "other.hycal")
    assert (
        remade["changed"]
        and remade["what"].endswith("with HyCal")
        and info["method"] == "HyCal"
        and info["images"] == 36
    )
    assert learned.path.read_bytes() == before


def test_a_file_is_never_replaced(learned, model):
    before = model.read_bytes()
    assert "exists already" in hycal_error("remake", learned.path, "HierarchicalHyCal", "--out", model)
    assert model.read_bytes() == before


def test_without_out_the_model_itself_has_the_other_method_and_undo_takes_it_back(model):
    before = hycal_json("info", model)
    changed = hycal_json("remake", model, "ncm")
    info = hycal_json("info", model)
    assert changed["what"] == "from HierarchicalHyCal to NCM" and changed["after"] == info["hash"] != before["hash"]
    assert (info["method"], info["images"]) == ("NCM", before["images"])
    assert hycal_json("undo", model)["after"] == before["hash"]
    assert hycal_json("info", model)["method"] == "HierarchicalHyCal"
