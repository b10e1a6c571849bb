"""`hycal suggest`: what to label next, from nothing and along the way."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

from tests.support.commands import hycal, hycal_error, hycal_json, run_hycal


def test_from_nothing_to_a_model_by_a_table(photos, tmp_path):
    """The labels of the suggestions, filled in, are a model; its next suggestions are other images."""
    pile, model = photos / "high", tmp_path / "new.hycal"
    rows = list(csv.DictReader(io.StringIO(hycal("suggest", model, pile, "--most", 4, "--csv"))))
    assert len(rows) == 4 and {row["label"] for row in rows} == {""} and not model.exists()
    lines = [f"{pile / row['file']},{Path(row['file']).parts[0]}" for row in rows]
    (tmp_path / "labels.csv").write_text("\n".join(["file,label", *lines]))
    hycal("learn", model, tmp_path / "labels.csv", "--outside", "--domain", "high", "-q")
    found = hycal_json("suggest", model, pile, "--most", 4)
    assert not {row["file"] for row in rows} & {item["file"] for item in found["suggestions"]}
    assert all(item["guess"].startswith("high/") for item in found["suggestions"])
    assert [item["file"] for item in found["skipped"]] == [str(pile / "7" / "notes.txt")]


def test_a_table_in_the_pile_is_filled_in_with_a_guess_and_learned(photos, tmp_path):
    """The table is no image of the pile, is never replaced, and a guess may be copied as a label."""
    pile, model = tmp_path / "pile", tmp_path / "new.hycal"
    shutil.copytree(photos / "high", pile)
    printed = hycal("suggest", model, pile, "--most", 2, "--out", pile / "labels.csv", "-q")
    rows = list(csv.DictReader(io.StringIO((pile / "labels.csv").read_text())))
    assert "fill in the column label" in printed and len(rows) == 2
    assert "not replaced" in hycal_error("suggest", model, pile, "--out", pile / "labels.csv")
    (pile / "labels.csv").write_text("\n".join(["file,label", *(f"{row['file']},tall/7" for row in rows)]))
    hycal("learn", model, pile / "labels.csv", "--domain", "tall", "-q")
    (pile / "tall.csv").write_text((pile / "labels.csv").read_text())
    assert set(hycal_json("learn", tmp_path / "again.hycal", pile / "tall.csv", "-q")["images"]) == {"tall/7"}
    found = hycal_json("suggest", model, pile, "--most", 2)
    assert {item["guess"] for item in found["suggestions"]} == {"tall/7"}
    assert [Path(item["file"]).name for item in found["skipped"]] == ["notes.txt"]


def test_a_copied_guess_is_the_known_class_whatever_the_table_is_called(model, photos, tmp_path):
    """Without --domain too; a new class of a known domain is that, and a plain name is asked about."""
    table, files = tmp_path / "more.csv", map(str, sorted((photos / "test" / "low").rglob("*.png")))
    rows = zip(files, ["low/0", "tall/new", "8"], strict=False)
    table.write_text("\n".join(["file,label", *map(",".join, rows)]))
    said = run_hycal("learn", model, table, "--outside")
    assert "look: more/8: a new class" in said.stderr and "--domain tall" in said.stderr
    counts = {entry["label"]: entry["images"] for entry in hycal_json("classes", model)}
    assert (counts["low/0"], counts["tall/new"], counts["more/8"]) == (7, 1, 1)
    judged = hycal_json("evaluate", model, table, "--outside")["domains"]
    assert {domain: score["total"] for domain, score in judged.items()} == {"low": 1, "tall": 1, "more": 1}


def test_one_line_for_each_image_the_same_every_time(learned, photos):
    printed = hycal("suggest", learned.path, photos / "test", "--most", 3)
    assert len(printed.splitlines()) == 3 and "%?" in printed
    assert printed == hycal("suggest", learned.path, photos / "test", "--most", 3)


def test_learned_images_are_not_suggested(learned, photos, tmp_path):
    assert hycal_json("suggest", learned.path, photos / "low", "--most", 50)["suggestions"] == []
    nothing = run_hycal("suggest", learned.path, photos / "low", "--out", tmp_path / "labels.csv")
    assert nothing.exit_code == 0 and not (tmp_path / "labels.csv").exists()
    assert "no image was encoded, 18 in the cache" in nothing.output
    assert "nothing to label: every image was learned (18 of 18), or is a near-duplicate" in nothing.output


def test_errors(learned, tmp_path, broken_image):
    assert "does not exist" in hycal_error("suggest", learned.path, tmp_path / "no")
    (tmp_path / "empty").mkdir()
    assert "no files in it" in hycal_error("suggest", learned.path, tmp_path / "empty")
    assert "is an image that can be used" in hycal_error("suggest", learned.path, broken_image.parent)
    assert "exclude each other" in hycal_error("suggest", learned.path, tmp_path, "--json", "--csv")
