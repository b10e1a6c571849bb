"""`hycal sort` and `hycal unsort`: real images into class folders, and back."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from benchmarks.faults.sorting import tree
from hycal.pile.manifest import NAME
from tests.support.commands import hycal, hycal_error, hycal_json, run_hycal


@pytest.fixture
def pile(photos: Path, broken_image: Path, tmp_path: Path) -> Path:
    """Six test images, two of which have the same name, one that was learned, and a file that is no image."""
    folder = tmp_path / "pile"
    shutil.copytree(photos / "test" / "low", folder)
    shutil.copy(min((photos / "low" / "1").iterdir()), folder / "learned.png")
    shutil.copy(broken_image, folder / "broken.png")
    for label in ("0", "1"):
        min((folder / label).iterdir()).rename(folder / label / "same.png")
    return folder


def test_copies_go_to_class_folders_and_a_learned_image_to_its_class(learned, pile, tmp_path):
    before = tree(pile)
    found = hycal_json("sort", learned.path, pile, "--out", tmp_path / "out", "--copy", "--error", 0.4, "--unknown", 0)
    assert tree(pile) == before
    assert found["places"] == {"sorted": 7}
    assert [item["file"] for item in found["skipped"]] == [str(pile / "broken.png")]
    places = {item["file"]: item["target"] for item in found["images"]}
    assert places["learned.png"] == "low/1/learned.png"
    for file, target in places.items():
        assert (tmp_path / "out" / target).read_bytes() == (pile / file).read_bytes()


def test_moved_images_come_back_to_the_byte(learned, pile, tmp_path):
    before, options = tree(pile), ("--out", tmp_path / "out", "--move", "--csv", "--xmp")
    printed = hycal("sort", learned.path, pile, *options)
    assert "move: 7 images to" in printed and "hycal unsort" in printed
    assert set(tree(pile)) - {"0", "1", "2"} == {"broken.png"}
    rows = list(csv.DictReader((tmp_path / "out" / "sorted.csv").read_text().splitlines()))
    assert len(rows) == 7 and all((tmp_path / "out" / row["sorted"]).is_file() for row in rows)
    assert len(list((tmp_path / "out").rglob("*.xmp"))) == sum(row["place"] == "sorted" for row in rows)
    again = hycal("sort", learned.path, pile, *options)
    assert "move: 0 images" in again and "7 were there already" in again
    assert "pass --yes" in hycal_error("unsort", tmp_path / "out")
    assert "7 images" in hycal("unsort", tmp_path / "out", "--yes")
    assert tree(pile) == before and not (tmp_path / "out").exists()


def test_one_class_estimates_nothing(low_model, pile, tmp_path):
    several = run_hycal("sort", low_model, pile, "--out", tmp_path / "out", "--copy", "--dry-run")
    for label in ("low/1", "low/2"):
        hycal("forget", low_model, label, "--yes")
    alone = run_hycal("sort", low_model, pile, "--out", tmp_path / "out", "--copy", "--dry-run")
    assert ["knows one class alone" in done.output for done in (several, alone)] == [False, True]
    assert several.exit_code == alone.exit_code == 0


def test_doubtful_and_strange_images_are_put_aside(learned, pile, tmp_path):
    found = hycal_json("sort", learned.path, pile, "--out", tmp_path / "out", "--link", "--error", 0.001)
    assert found["places"].get("sorted", 0) <= 2 and found["places"]["unsure"] >= 4
    links = [path for path in (tmp_path / "out").rglob("*.png") if path.is_symlink()]
    assert len(links) == 7 and all(link.resolve().is_relative_to(pile) for link in links)


def test_a_dry_run_touches_nothing(learned, pile, tmp_path):
    printed = hycal("sort", learned.path, pile, "--out", tmp_path / "out", "--move", "--dry-run")
    assert "learned.png -> low/1/learned.png (low/1 100.0%)" in printed and "would move 7 images" in printed
    assert not (tmp_path / "out").exists() and len(list(pile.rglob("*.png"))) == 8


def test_links_are_not_moved(learned, pile, tmp_path):
    (pile / "link.png").symlink_to(pile / "learned.png")
    result = run_hycal("sort", learned.path, pile, "--out", tmp_path / "out", "--move", "--strict")
    assert result.exit_code == 3 and "reached by a link" in result.output
    assert (pile / "link.png").is_symlink()


def test_one_sorted_folder_has_one_source_and_one_way(learned, pile, photos, tmp_path):
    hycal("sort", learned.path, pile, "--out", tmp_path / "out", "--copy")
    before = tree(tmp_path / "out")
    assert "goes on only so" in hycal_error("sort", learned.path, pile, "--out", tmp_path / "out", "--move")
    assert "goes on only so" in hycal_error("sort", learned.path, photos / "test", "--out", tmp_path / "out", "--copy")
    assert tree(tmp_path / "out") == before


def test_what_is_wrong_is_said_before_anything_is_touched(learned, pile, tmp_path):
    before = tree(tmp_path)
    out = tmp_path / "out"
    assert "does not exist" in hycal_error("sort", learned.path, tmp_path / "no", "--out", out, "--copy")
    assert "Make it first" in hycal_error("sort", learned.path, pile, "--out", tmp_path / "a" / "b", "--copy")
    assert "lie in each other" in hycal_error("sort", learned.path, pile, "--out", pile / "x", "--copy")
    assert "no model" in hycal_error("sort", tmp_path / "no.hycal", pile, "--out", out, "--copy")
    for wrong in (
        ["--copy", "--move"],
        [],
        ["--copy", "--layout", "heap"],
        ["--copy", "--error", "7"],
        ["--copy", "--error", "0"],
    ):
        assert run_hycal("sort", learned.path, pile, "--out", out, *wrong).exit_code == 2
    assert "no folder" in hycal_error("unsort", out)
    assert f"has no {NAME}" in hycal_error("unsort", pile)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(("ways", "said"), [((), "choose one of"), (("--copy", "--link"), "choose only one of")])
def test_one_way_must_be_chosen(learned, pile, tmp_path, ways, said):
    result = run_hycal("sort", learned.path, pile, "--out", tmp_path / "out", "--dry-run", *ways)
    assert result.exit_code == 2 and f"{said} --copy, --move and --link" in result.output


def test_unsort_names_what_had_to_stay(learned, pile, tmp_path):
    found = json.loads(hycal("sort", learned.path, pile, "--out", tmp_path / "out", "--copy", "--json"))
    edited = tmp_path / "out" / found["images"][0]["target"]
    edited.write_bytes(b"edited")
    result = run_hycal("unsort", tmp_path / "out")
    assert result.exit_code == 1 and str(edited) in result.output.replace("\n", "") and edited.exists()
