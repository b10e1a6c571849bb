"""`hycal seal`: a copy without images, and what can be done with it."""

from __future__ import annotations

import json
import shutil

import pytest

from hycal import load
from hycal.project import Project
from tests.encoders.small_clip import write_transformers
from tests.support.commands import hycal, hycal_error, hycal_json


@pytest.fixture(scope="session")
def plain(learned, shared_cache, photos, tmp_path_factory):
    """A model of a method that leaves nothing out when it is sealed."""
    path = tmp_path_factory.mktemp("plain") / "digits.hycal"
    hycal("learn", path, photos / "low", "--method", "SLDA", "--cache", shared_cache / "embeddings")
    return path


@pytest.fixture(scope="session")
def shared_small(plain, tmp_path_factory):
    path = tmp_path_factory.mktemp("sealed") / "small.hycal"
    hycal("seal", plain, "--out", path)
    return path


@pytest.fixture
def small(shared_small, tmp_path):
    return shutil.copy(shared_small, tmp_path / "small.hycal")


def test_it_holds_no_name_thumbnail_key_or_history(plain, small, photos):
    opened, sealed = Project(plain).state, Project(small).state
    content = small.read_bytes()
    assert len(opened.examples) == 18 and not sealed.examples and not sealed.history
    for example in opened.examples:
        for part in (example.row.tobytes(), example.key, example.name.encode(), example.thumbnail[:64]):
            assert part in plain.read_bytes() and part not in content


def test_it_answers_as_before(plain, small, photos):
    said = [hycal("predict", path, photos / "test", "--json").splitlines() for path in (plain, small)]
    before, after = ([json.loads(line) for line in lines] for lines in said)
    assert before and [image["answers"][0]["label"] for image in before] == [
        image["answers"][0]["label"] for image in after
    ]
    for one, other in zip(before, after, strict=True):
        for mine, theirs in zip(one["answers"], other["answers"], strict=True):
            assert theirs["probability"] == pytest.approx(mine["probability"], abs=1e-4)


def test_info_and_classes_say_what_it_holds(small):
    facts = hycal_json("info", small)
    assert facts["sealed"].startswith("counts and means of classes, and the scatter of each domain")
    assert facts["images"] == 18 and facts["domains"] == {"low": {"classes": 3, "images": 18}}
    (line,) = (line for line in hycal("info", small).splitlines() if line.startswith("sealed     counts and means"))
    assert line.endswith(
        "images of 0 of 3 classes could be computed from that, and in 1 of 1 domains whoever has an image could check "
        "whether it was learned"
    )
    assert [row["images"] for row in hycal_json("classes", small)] == [6, 6, 6]


def test_info_says_of_an_open_model_that_it_is_not_sealed(plain):
    assert hycal_json("info", plain)["sealed"] == "no"


def test_evidence_names_no_nearest_images_where_there_are_none(plain, small, photos):
    image = min((photos / "low" / "0").iterdir())
    assert "nearest of 6 learned: " in hycal("predict", plain, image, "--explain")
    said = hycal("predict", small, image, "--explain")
    assert "low/0" in said and "nearest" not in said


def test_a_change_says_how_many_images_it_counts(small, photos, shared_cache):
    said = hycal("learn", small, photos / "high", "--domain", "tall", "--cache", shared_cache / "embeddings")
    assert "6 classes, 36 images" in said


def test_it_learns_forgets_renames_and_merges(plain, small, photos, shared_cache, tmp_path):
    cache = ("--cache", shared_cache / "embeddings")
    learned = hycal_json("learn", small, photos / "high", "--domain", "tall", *cache)
    assert learned["images"] == {"tall/7": 6, "tall/8": 6, "tall/9": 6} and learned["changed"]
    hycal(
        "learn", plain_copy := shutil.copy(plain, tmp_path / "open.hycal"), photos / "high", "--domain", "tall", *cache
    )
    queries = [example.row for example in Project(plain_copy).state.examples[:5]]
    expected = load(plain_copy).predict_proba(queries)
    scores, found = load(plain_copy).decision_function(queries), load(small).decision_function(queries)
    assert found == pytest.approx(scores, abs=1e-4 * abs(scores).max()) and expected.shape == (5, 6)
    hycal("rename", small, "low", "short")
    assert "short has that name already" in hycal("rename", small, "short", "short")
    assert "has no undo" in hycal("forget", small, "short/0", "--yes")
    assert load(small).classes_.tolist() == ["short/1", "short/2", "tall/7", "tall/8", "tall/9"]
    assert {*load(small).records_.spreads} == {"short", "tall"}
    hycal("merge", small, plain_copy, "--out", tmp_path / "both.hycal")
    assert load(tmp_path / "both.hycal").counts_.tolist() == [6, 6, 6, 6, 6, 12, 12, 12]
    assert [entry["action"] for entry in hycal_json("info", small)["history"]] == ["learn", "rename", "forget"]


NO_VIEW = "the model is sealed: add or drop views in the one that it was sealed from"


def test_no_view_is_recommended(small):
    said = hycal("views", small)
    assert NO_VIEW in said and "--add" not in said


def test_a_model_of_two_encoders_is_sealed(photos, tmp_path, monkeypatch):
    write_transformers(tmp_path / "cache" / "encoders" / "clip-vit-b32", activation="quick_gelu")
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path / "cache"))
    model, small, views = tmp_path / "m.hycal", tmp_path / "small.hycal", "builtin+clip-vit-b32"
    hycal("learn", model, photos / "low", "--method", "SLDA", "--encoder", views, "-q")
    said = hycal_json("seal", model, "--out", small, "--half")
    assert "the scatter of each domain, in each of 2 views; images of 0 of 3" in said["holds"] and not said["left_out"]
    answers = [hycal("predict", path, photos / "test", "--csv", "--top", 1) for path in (model, small)]
    labels = [[line.split(",")[2] for line in each.splitlines()] for each in answers]
    assert labels[0] == labels[1] and len(labels[0]) == 7
    shown = hycal_json("views", small)["views"]
    assert [(view["encoder"], view["texts"]) for view in shown] == [("builtin", 0), ("clip-vit-b32", 3)]
    assert all(set(view["weights"]) == {"low"} for view in shown)
    hycal("learn", small, photos / "high", "--domain", "tall", "-q")
    assert set(hycal_json("views", small)["views"][0]["weights"]) == {"low", "tall"}
    before = small.read_bytes()
    assert NO_VIEW in hycal("views", small)
    for option in ("--drop", "--add"):
        assert "sealed: it has no embeddings" in hycal_error("views", small, option, "clip-vit-b32")
    assert small.read_bytes() == before


def test_a_sealed_model_is_compared_by_numbers_of_images(plain, small):
    said = hycal("diff", plain, small)
    assert "3 classes with as many images in both; only numbers of images were compared" in said
    assert "images only in" not in said and "are the same in both" not in said and "sealed: no in" in said
    found = hycal_json("diff", plain, small)
    assert found["counted"] == {f"low/{digit}": [6, 6] for digit in range(3)}
    assert not found["changed"] and not found["equal"] and not found["same_classes"]


def test_sealed_models_are_the_same_in_classes_of_equal_moments(small, photos, shared_small, shared_cache, tmp_path):
    assert hycal("diff", small, shared_small, "--strict") == "the models are equal\n"
    (tmp_path / "more" / "0").mkdir(parents=True)
    shutil.copy(min((photos / "test" / "low" / "0").iterdir()), tmp_path / "more" / "0")
    hycal("learn", small, tmp_path / "more", "--domain", "low", "--cache", shared_cache / "embeddings")
    said = hycal("diff", small, shared_small)
    assert f"low/0: 7 images in {small}, 6 in {shared_small}" in said and "2 classes are the same in both" in said
    assert "calibration and shared covariances" in said


def test_sealed_models_that_differ_beside_their_classes_are_not_equal(plain, small, tmp_path):
    """The covariance of one of them keeps the part of a class that it forgot."""
    never = shutil.copy(plain, tmp_path / "never.hycal")
    for path in (small, never):
        hycal("forget", path, "low/0", "--yes")
    hycal("seal", never, "--out", tmp_path / "without.hycal")
    found = hycal_json("diff", small, tmp_path / "without.hycal")
    assert not found["equal"] and found["same_classes"] == 2 and [*found["settings"]] == ["sealed"]


REFUSED = {
    "undo": ("undo", "MODEL"),
    "correct": ("correct", "MODEL", "IMAGE", "low/1"),
    "remake": ("remake", "MODEL", "NCM"),
    "methods": ("methods", "MODEL"),
    "advise": ("advise", "MODEL"),
    "suggest": ("suggest", "MODEL", "FOLDER"),
}


@pytest.mark.parametrize("command", REFUSED)
def test_what_needs_single_images_is_refused_with_the_reason(command, small, photos):
    before, image = small.read_bytes(), min((photos / "low" / "0").iterdir())
    words = {"MODEL": small, "IMAGE": image, "FOLDER": photos / "test" / "low"}
    said = hycal_error(*(words.get(word, word) for word in REFUSED[command]))
    assert "sealed: it has no embeddings of single images" in said
    assert command != "correct" or "it cannot correct single images" in said
    assert small.read_bytes() == before


def test_an_open_model_does_not_take_in_a_sealed_one(plain, small, tmp_path):
    said = hycal_error("merge", plain, small, "--out", tmp_path / "both.hycal")
    assert "merge that one into this one" in said and not (tmp_path / "both.hycal").exists()


PART = "The covariance of domain low keeps its part, and the calibration stays"
CALIBRATION = "The calibration stays as it was at sealing"


@pytest.mark.parametrize("option", [(), ("--for-good",)])
def test_forgetting_a_class_says_what_stays(option, small, photos, shared_cache):
    said = hycal("forget", small, "low/0", "--yes", *option)
    assert PART in said and "Nothing of what was forgotten" not in said and "embeddings were removed" not in said
    assert "forget before you seal if no trace may stay" in said
    hycal("learn", small, photos / "high", "--domain", "tall", "--cache", shared_cache / "embeddings")
    assert hycal_json("forget", small, "tall", "--yes", *option)["stays"].startswith(CALIBRATION)


@pytest.mark.parametrize(("method", "stays"), [("NCM", CALIBRATION), ("HyCal", CALIBRATION), ("KLDA", "all classes")])
def test_what_stays_depends_on_the_method(method, stays, plain, tmp_path):
    hycal("remake", plain, method, "--out", tmp_path / "m.hycal")
    hycal("seal", tmp_path / "m.hycal", "--out", tmp_path / "small.hycal")
    assert stays in hycal("forget", tmp_path / "small.hycal", "low/0", "--yes", "--for-good")


def test_the_last_class_stays(small):
    assert "keeps its last class" in hycal_error("forget", small, "low", "--yes")


def test_a_method_that_cannot_be_sealed_says_why(model, tmp_path):
    hycal("remake", model, "DualRAIL")
    assert "DualRAIL" in hycal_error("seal", model, "--out", tmp_path / "small.hycal")
    assert not (tmp_path / "small.hycal").exists()


def test_the_default_method_leaves_its_regression_out_and_says_so(learned, tmp_path):
    said = hycal_json("seal", learned.path, "--out", tmp_path / "small.hycal", "--half")
    assert "answers may change slightly, 2 to 4 in 100" in said["left_out"] and said["bytes"] < said["bytes_before"]
    assert load(tmp_path / "small.hycal").sealed_
    assert "exists already" in hycal_error("seal", learned.path, "--out", tmp_path / "small.hycal")


def test_a_sealed_model_is_not_sealed_again(learned, tmp_path):
    small, half = tmp_path / "small.hycal", tmp_path / "half.hycal"
    assert "answers may change" in hycal("seal", learned.path, "--out", small)
    hycal("rename", small, "low", "short")
    said = hycal("seal", small, "--out", half, "--half")
    assert f"{small} is sealed already; copied, without its history, 6 classes in {half}" in said
    assert "answers may change" not in said and not Project(half).state.history
    assert (
        half.stat().st_size < 0.6 * small.stat().st_size
        and load(half).classes_.tolist() == load(small).classes_.tolist()
    )
    again = hycal_json("seal", small, "--out", tmp_path / "again.hycal")
    assert again["sealed_already"] and not again["left_out"] and again["hash"] == hycal_json("info", small)["hash"]


def test_one_image_of_a_class_can_be_computed_and_info_says_so(photos, shared_cache, tmp_path):
    (tmp_path / "one" / "cat").mkdir(parents=True)
    shutil.copy(min((photos / "low" / "0").iterdir()), tmp_path / "one" / "cat")
    hycal("learn", tmp_path / "m.hycal", tmp_path / "one", "--cache", shared_cache / "embeddings")
    assert "images of 1 of 1 classes could be computed" in hycal("seal", tmp_path / "m.hycal", "--out", tmp_path / "s")
