"""`hycal predict`: what images show, for people, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.commands import hycal, hycal_error, run_hycal


def answers(*arguments):
    return [json.loads(line) for line in hycal("predict", *arguments, "--json").splitlines()]


def rows(*arguments):
    return list(csv.DictReader(io.StringIO(hycal("predict", *arguments, "--csv"))))


@pytest.fixture
def image(photos):
    """A learned image."""
    return min((photos / "low" / "0").iterdir())


@pytest.fixture
def noise(tmp_path):
    """An image like nothing that was learned."""
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "noise.png")
    return tmp_path / "noise.png"


def test_each_image_of_a_folder_gets_its_best_classes(learned, photos):
    found = answers(learned.path, photos / "test")
    assert len(found) == 6 and all(len(answer["answers"]) == 5 for answer in found)
    right = [answer["answers"][0]["label"] == f"low/{Path(answer['file']).parent.name}" for answer in found]
    assert sum(right) >= 4
    assert not any(answer["unknown"] for answer in found)


def test_csv_has_the_same_labels(learned, photos):
    best = [answer["answers"][0]["label"] for answer in answers(learned.path, photos / "test")]
    assert [row["label"] for row in rows(learned.path, photos / "test", "--top", "1")] == best


def test_csv_has_no_formula_and_no_control(learned, image, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named = Path("=1+1\x1b[31m\u202egpj.png")
    named.write_bytes(image.read_bytes())
    (row,) = rows(learned.path, named, "--top", "1")
    assert row["file"] == r"'=1+1\x1b[31m\u202egpj.png" and row["label"] == "low/0"
    score = answers(learned.path, named, "--top", "1")[0]["answers"][0]["score"]
    assert float(row["score"]) == pytest.approx(score, abs=1e-6)


def test_the_evidence_has_shares_and_nearest_images(learned, photos):
    image = min((photos / "test" / "low" / "0").iterdir())
    (answer,) = answers(learned.path, image, "--explain")
    best = answer["answers"][0]["evidence"]
    assert best["images"] == 6 and len(best["nearest"]) == 3
    assert {"direction", "distance", "domain"} <= set(best["parts"]) and best["quantity"] == "evidence"
    said = hycal("predict", learned.path, image, "--explain")
    assert "nearest of 6 learned" in said and " by distance + " in said and "+ -" not in said


def test_an_image_like_nothing_learned_is_marked_unknown(learned, image, noise):
    asked = (learned.path, image, noise)
    assert [answer["unknown"] for answer in answers(*asked)] == [False, True]
    assert [row["unknown"] for row in rows(*asked, "--top", "1")] == ["false", "true"]
    assert hycal("predict", *asked).count("unlike anything learned; nearest: ") == 1
    assert [answer["unknown"] for answer in answers(*asked, "--unknown", "0")] == [None, None]
    assert "unknown" not in rows(*asked, "--unknown", "0")[0]


def test_a_file_that_is_no_image_gets_its_reason(learned, image, broken_image):
    mixed = hycal("predict", learned.path, image, broken_image, "--strict", "--json", code=3)
    good, bad = (json.loads(line) for line in mixed.splitlines())
    assert "answers" in good and "not an image" in bad["error"]
    hycal("predict", learned.path, broken_image.parents[1], code=1)


def test_an_error_says_what_to_do(learned, image, tmp_path):
    before = learned.path.read_bytes()
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").write_text("hello")
    for message, arguments in {
        "There is no model at": (tmp_path / "none.hycal", image),
        "other is not a hycal model, or it is damaged": (tmp_path / "other", image),
        "Did you mean 'builtin'?": (learned.path, image, "--encoder", "Buitlin"),
        "There is no file or folder": (learned.path, "nowhere.jpg"),
        "exclude each other": (learned.path, image, "--json", "--csv"),
        "There are no files in": (learned.path, tmp_path / "empty"),
    }.items():
        assert message in hycal_error("predict", *arguments)
    assert learned.path.read_bytes() == before


@pytest.mark.parametrize("options", [("predict", "--unknown"), ("sort", "--unknown"), ("sort", "--error")])
def test_what_is_no_share_is_a_wrong_call_that_names_its_option(learned, photos, tmp_path, options):
    command, option = options
    more = ("--copy", "--out", tmp_path / "sorted") if command == "sort" else ()
    refused = run_hycal(command, learned.path, photos / "test", *more, option, "7")
    assert refused.exit_code == 2 and f"'{option}': the value is 7; expected a share" in refused.output
    assert "files in" not in refused.output, "before any work"


def test_the_only_class_has_no_probability(low_model, image, noise):
    hycal("forget", low_model, "low/1", "--yes")
    hycal("forget", low_model, "low/2", "--yes")
    said = hycal("predict", low_model, image, noise)
    assert said.splitlines() == [
        f"{image}: low/0 (the only class)",
        f"{noise}: unlike anything learned; nearest: low/0 (the only class)",
    ]


def test_no_image_is_a_wrong_call(learned):
    assert run_hycal("predict", learned.path).exit_code == 2
