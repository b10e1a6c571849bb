"""`hycal labels` writes what other programs read, and `hycal learn` reads what they write."""

from __future__ import annotations

import json

import pytest

from hycal.data.annotations import MARKS, MODEL, read_labels
from tests.support.commands import hycal, hycal_error, hycal_json, run_hycal

NAMES = {"label-studio": "tasks.json", "cvat": "annotations.xml", "coco": "coco.json", "csv": "labels.csv"}


@pytest.mark.parametrize("form", MARKS)
def test_a_model_of_the_written_labels_is_the_same_model(learned, photos, tmp_path, form):
    out = tmp_path / NAMES[form]
    printed = hycal("labels", learned.path, "--images", photos, "--to", form, "--out", out)
    assert f"{out}: 42 images, 36 labels, " in printed and "6 classes" in printed
    found = read_labels(out)
    guesses = [item for item in found if item.predicted]
    assert guesses and all(item.file.startswith("test/low/") and 0.0 < item.confidence <= 1.0 for item in guesses)
    again = hycal_json("learn", tmp_path / "again.hycal", out, "--images", photos)
    assert again["after"] == learned.tall["after"]


def test_a_model_alone_gives_the_names_of_its_images(learned, photos, tmp_path):
    hycal("labels", learned.path, "--to", "csv", "--out", tmp_path / "labels.csv")
    low = [item for item in read_labels(tmp_path / "labels.csv") if item.domain == "low"]
    assert len(low) == 18 and all((photos / "low" / item.file).is_file() and len(item.sha256) == 64 for item in low)


def test_a_sorted_folder_gives_predictions(learned, photos, tmp_path):
    hycal("sort", learned.path, photos / "test" / "low", "--out", tmp_path / "out", "--copy", "--unknown", 0)
    hycal("labels", tmp_path / "out", "--to", "coco", "--out", tmp_path / "coco.json")
    found = read_labels(tmp_path / "coco.json")
    assert len(found) == 6 and all(item.by == MODEL and (tmp_path / "out" / item.file).is_file() for item in found)
    assert all(
        {"width", "height"} <= set(entry) for entry in json.loads((tmp_path / "coco.json").read_text())["images"]
    )
    assert "6 have a prediction, which is not learned" in hycal_error(
        "learn", tmp_path / "new.hycal", tmp_path / "coco.json", "--images", tmp_path / "out"
    )


def test_class_folders_and_files_are_converted(photos, tmp_path):
    hycal("labels", photos / "low", "--to", "cvat", "--out", tmp_path / "a.xml")
    hycal("labels", tmp_path / "a.xml", "--images", photos / "low", "--to", "csv", "--out", tmp_path / "a.csv")
    assert read_labels(tmp_path / "a.csv") == read_labels(tmp_path / "a.xml")
    assert {item.name for item in read_labels(tmp_path / "a.csv")} == {"low/0", "low/1", "low/2"}


def test_sizes_of_images_outside_of_the_folder_are_not_read(photos, tmp_path):
    (tmp_path / "in").mkdir()
    inside, secret = tmp_path / "in" / "m.csv", min((photos / "low" / "0").iterdir())
    inside.write_text(f"file,label\n{secret},cat\n")
    hycal("labels", inside, "--to", "coco", "--out", tmp_path / "coco.json")
    assert "width" not in json.loads((tmp_path / "coco.json").read_text())["images"][0]


def test_nothing_is_replaced_that_hycal_did_not_write(learned, tmp_path):
    out = tmp_path / "labels.csv"
    out.write_text("file,label\nmine.jpg,cat\n")
    command = ("labels", learned.path, "--to", "csv", "--out", out)
    assert "did not write" in hycal_error(*command) and out.read_text().endswith("mine.jpg,cat\n")
    hycal(*command, "--force")
    hycal(*command)
    assert run_hycal("labels", learned.path, "--to", "yaml", "--out", out).exit_code == 2


def test_learning_says_why_an_image_of_a_file_is_left_out(photos, tmp_path):
    image = min((photos / "low" / "0").iterdir())
    choices = [{"type": "choices", "value": {"choices": ["a", "b"]}}]
    entry = {"data": {"image": image.name}, "annotations": [{"result": choices}]}
    (tmp_path / "tasks.json").write_text(json.dumps([entry]))
    said = hycal_error("learn", tmp_path / "m.hycal", tmp_path / "tasks.json", "--images", image.parent)
    assert "No image of" in said and "has 2 labels: a, b" in said


def test_a_table_with_semicolons_is_learned_and_one_of_embeddings_is_explained(photos, tmp_path):
    files = [path.name for path in sorted((photos / "low" / "0").iterdir())[:2]]
    (tmp_path / "m.csv").write_text("file;label\n" + "".join(f"{file};zero\n" for file in files))
    found = hycal_json("learn", tmp_path / "m.hycal", tmp_path / "m.csv", "--images", photos / "low" / "0")
    assert found["images"] == {"m/zero": 2}
    hycal("embed", photos / "low", "--out", tmp_path / "low.npz")
    assert "is a table of embeddings, as `hycal embed` writes it" in hycal_error(
        "learn", tmp_path / "m.hycal", tmp_path / "low.npz"
    )
    assert "is not a file" in hycal_error("learn", tmp_path / "m.hycal", photos, "--images", photos)
