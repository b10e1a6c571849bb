"""From learning with two encoders to predicting, adding, dropping and undoing a view, on real images."""

from __future__ import annotations

import shutil

import pytest

from hycal import load
from hycal.encoders import onnx_backend
from hycal.project import Project
from tests.encoders.small_clip import write_transformers
from tests.support.commands import hycal, hycal_error, hycal_json, run_hycal
from tests.support.data import needs, require

pytestmark = needs("xd8-images")
CLIP = "clip-vit-b32"
BOTH = f"{CLIP}+builtin"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache with a small CLIP in the place of clip-vit-b32."""
    folder = tmp_path_factory.mktemp("cache")
    write_transformers(folder / "encoders" / CLIP, activation="quick_gelu")
    return folder


@pytest.fixture(autouse=True)
def use_cache(cache, monkeypatch):
    monkeypatch.setenv("HYCAL_CACHE", str(cache))


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Two domains of three classes, four images to learn of each, and two to ask about."""
    root, source = tmp_path_factory.mktemp("photos"), require("xd8-images")
    for domain in ("flower", "texture"):
        for class_ in sorted((source / domain / "train").iterdir())[:3]:
            for number, path in enumerate(sorted(class_.iterdir())[:6]):
                folder = root / ("learn" if number < 4 else "ask") / domain / class_.name
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, folder)
    return root


@pytest.fixture
def counted(monkeypatch):
    """The images that go through image towers, by the size of the batches."""
    batches = []
    run = onnx_backend.Graph.run

    def counting(self, **inputs):
        if "input_ids" not in inputs:
            batches.append(len(next(iter(inputs.values()))))
        return run(self, **inputs)

    monkeypatch.setattr(onnx_backend.Graph, "run", counting)
    return batches


def model_bytes(path, out) -> bytes:
    load(path).save(out)
    return out.read_bytes()


def best(model, photos, *options) -> dict[str, str]:
    output = run_hycal("predict", model, photos / "ask", "--csv", "--top", 1, *options)
    assert output.exit_code == 0, output.output
    lines = [line.split(",") for line in output.stdout.splitlines()[1:]]
    return {line[0]: line[2] for line in lines}


def test_from_learning_to_dropping(photos, tmp_path, counted):
    one, model = tmp_path / "one.hycal", tmp_path / "both.hycal"
    hycal("learn", one, photos / "learn", "--encoder", "builtin", "-q")
    assert sum(counted) == 24
    counted.clear()
    receipt = hycal_json("learn", model, photos / "learn", "--encoder", BOTH, "-q")
    assert sum(counted) == 24  # by the other part alone: `builtin` had them
    assert receipt["what"] == "24 images of 6 classes"
    assert hycal_json("info", model)["encoder"] == f"builtin+{CLIP}"
    views = hycal_json("views", model)["views"]
    assert [(view["encoder"], view["dimension"], view["lacking"]) for view in views] == [
        ("builtin", 512, 0),
        (CLIP, 512, 0),
    ]
    assert [view["texts"] for view in views] == [0, 6] and set(views[0]["weights"]) == {"flower", "texture"}
    table = hycal("views", model)
    assert "builtin" in table and "texture" in table and "weights that held-out images gave" in table
    answers = best(model, photos)
    assert len(answers) == 12
    explained = hycal("predict", model, photos / "ask", "--explain", "--top", 1)
    assert "by builtin" in explained and f"by {CLIP}" in explained

    counted.clear()
    assert hycal_json("views", model, "--drop", CLIP)["what"] == f"{CLIP} dropped"
    assert model_bytes(model, tmp_path / "a") == model_bytes(one, tmp_path / "b")
    assert hycal_json("diff", model, one)["equal"]
    added = hycal_json("views", model, "--add", CLIP)  # every embedding is in the cache
    assert added["after"] == receipt["after"] and added["not_found"] == [] and not counted
    for expected in (hycal_json("info", one)["hash"], receipt["after"]):
        assert hycal_json("undo", model)["after"] == expected
    assert hycal_json("redo", model)["after"] == hycal_json("info", one)["hash"]
    hycal("undo", model)
    assert best(model, photos) == answers


def test_a_view_is_added_to_images_that_are_found_by_their_content(photos, tmp_path, counted):
    model, own = tmp_path / "m.hycal", ("--cache", tmp_path / "own")
    hycal("learn", model, photos / "learn", "-q", *own)
    before = model.read_bytes()
    said = hycal_error("views", model, "--add", CLIP, *own)
    assert "None of the 24 images that lack the view clip-vit-b32 was found" in said and "--images FOLDER" in said
    assert model.read_bytes() == before
    elsewhere = tmp_path / "renamed"
    elsewhere.mkdir()
    for number, path in enumerate(sorted((photos / "learn" / "flower").rglob("*.*"))):
        shutil.copy(path, elsewhere / f"{number}.x")
    (elsewhere / "broken.jpg").write_bytes(b"\xff\xd8 no image")
    counted.clear()
    receipt = hycal_json("views", model, "--add", CLIP, "--images", elsewhere, *own)
    assert sum(counted) == 12 and receipt["what"] == f"{CLIP} added to 12 images of 3 classes"
    assert len(receipt["not_found"]) == 12 and all(name.startswith("texture/") for name in receipt["not_found"])
    assert [view["lacking"] for view in hycal_json("views", model)["views"]] == [0, 12]
    assert len(best(model, photos, *own)) == 12
    counted.clear()
    rest = hycal("views", model, "--add", CLIP, "--images", photos / "learn", *own)
    assert sum(counted) == 12 and "12 images of 3 classes" in rest
    assert [view["lacking"] for view in hycal_json("views", model)["views"]] == [0, 0]
    both = tmp_path / "both.hycal"
    hycal("learn", both, photos / "learn", "--encoder", BOTH, "-q", *own)
    assert model_bytes(model, tmp_path / "a") == model_bytes(both, tmp_path / "b")


def test_a_machine_without_an_encoder_answers_from_the_other_views(photos, tmp_path, monkeypatch):
    model = tmp_path / "both.hycal"
    hycal("learn", model, photos / "learn", "--encoder", BOTH, "-q")
    left_out = best(model, photos, "--encoder", "builtin")
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path / "empty"))
    result = run_hycal("predict", model, photos / "ask", "--csv", "--top", 1)
    assert result.exit_code == 0
    warned = result.stderr.replace("\n", " ")
    assert f"without the view {CLIP}" in warned and f"hycal encoders get {CLIP}" in warned
    assert {line.split(",")[0]: line.split(",")[2] for line in result.stdout.splitlines()[1:]} == left_out
    assert "hycal encoders get clip-vit-b32" in hycal_error("predict", model, photos / "ask", "--encoder", BOTH)
    learned = run_hycal("learn", model, photos / "ask", "-q", "--json")
    assert learned.exit_code == 0 and f"without the view {CLIP}" in learned.stderr
    assert [view["lacking"] for view in hycal_json("views", model)["views"]] == [0, 12]
    said = hycal_error("learn", tmp_path / "new.hycal", photos / "learn", "--encoder", BOTH)
    assert "of encoder 'clip-vit-b32'" in said and not (tmp_path / "new.hycal").exists()


def test_embeddings_of_one_view_judge_a_model_of_two(photos, tmp_path):
    model = tmp_path / "both.hycal"
    hycal("learn", model, photos / "learn", "--encoder", BOTH, "-q")
    for name in ("builtin", BOTH):
        hycal("embed", photos / "ask", "--encoder", name, "--out", tmp_path / "ask.npz", "-q")
        assert hycal_json("evaluate", model, tmp_path / "ask.npz")["overall"]["total"] == 12
    hycal("embed", photos / "ask", "--encoder", "builtin", "--out", tmp_path / "ask.npz", "-q")
    hycal("learn", tmp_path / "clip.hycal", photos / "learn", "--encoder", CLIP, "-q")
    assert "cannot be compared" in hycal_error("evaluate", tmp_path / "clip.hycal", tmp_path / "ask.npz")


def test_two_encoders_are_tried_against_one_and_advice_sees_both(photos, tmp_path):
    one, model = tmp_path / "one.hycal", tmp_path / "both.hycal"
    hycal("learn", one, photos / "learn", "-q")
    (trial,) = hycal_json("methods", one, "--images", photos / "learn", "--encoder", BOTH)["encoders"]
    assert trial["encoder"] == f"builtin+{CLIP}" and trial["other"]["total"] == 24
    hycal("learn", model, photos / "learn", "--encoder", BOTH, "-q")
    assert hycal_json("advise", model)["overall"]["total"] == 24


def test_after_forgetting_for_good_no_byte_of_a_dropped_view_is_left(photos, tmp_path):
    model = tmp_path / "both.hycal"
    hycal("learn", model, photos / "learn", "--encoder", BOTH, "-q")
    gone = [example.row[512:].tobytes() for example in Project(model).state.examples]
    hycal("views", model, "--drop", CLIP)
    assert all(row in model.read_bytes() for row in gone)
    hycal("forget", model, "texture/banded", "--for-good", "--yes")
    assert not any(row in model.read_bytes() for row in gone)


@pytest.mark.parametrize("command", ["suggest", "discover", "find", "sort"])
def test_a_pile_is_seen_by_both_encoders(photos, tmp_path, command):
    model, pile = tmp_path / "both.hycal", shutil.copytree(photos / "ask", tmp_path / "pile")
    hycal("learn", model, photos / "learn", "--encoder", BOTH, "-q")
    if command == "find":
        nearest = hycal_json("find", model, pile, photos / "learn" / "texture" / "banded" / _first(photos), "--most", 3)
        assert all(-1 <= one["value"] <= 1.0001 for one in nearest["images"])
        assert hycal_json("find", model, pile, "some words")["kind"] == "text"
    else:
        hycal(command, model, pile, *(["--out", tmp_path / "sorted", "--copy"] if command == "sort" else []))
    same = hycal_json("duplicates", pile, "--encoder", BOTH)
    assert same["images"] == 12


def test_what_several_views_cannot_do_is_told(photos, tmp_path):
    model = tmp_path / "both.hycal"
    hycal("learn", model, photos / "learn", "--encoder", BOTH, "-q")
    exported = hycal_error("export", model, "--onnx", tmp_path / "m.onnx", "--with-encoder")
    assert f"The encoder builtin+{CLIP} is not one ONNX graph" in exported
    said = hycal("methods", model, "-q")
    assert said.count("takes embeddings of one encoder") < 4  # methods with the same reason share a line


def test_a_sealed_copy_answers_learns_and_is_shared(photos, tmp_path):
    model, small = tmp_path / "both.hycal", tmp_path / "small.hycal"
    hycal("learn", model, photos / "learn", "--encoder", BOTH, "-q")
    assert "in each of 2 views" in hycal("seal", model, "--out", small)
    assert hycal("hub", "save", small, tmp_path / "hub")
    before, after = (best(path, photos) for path in (model, small))
    assert len(after) == 12 and sum(before[name] == after[name] for name in before) >= 10
    assert best(small, photos, "--encoder", "builtin").keys() == before.keys()
    hycal("learn", small, photos / "ask", "-q")
    assert hycal_json("info", small)["images"] == 36
    assert [view["lacking"] for view in hycal_json("views", small)["views"]] == [0, 0]


def _first(photos) -> str:
    return min(path.name for path in (photos / "learn" / "texture" / "banded").iterdir())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--add", "nothing"], "There is no encoder 'nothing'"),
        (["--add", BOTH], "Add one after the other"),
        (["--add", "builtin", "--drop", "builtin"], "exclude each other"),
        (["--images", "."], "--add ENCODER"),
        (["--drop", CLIP], f"The model has no view {CLIP!r}; it has builtin."),
        (["--drop", "builtin"], "the model has one view, builtin, and needs it"),
        (["--add", CLIP, "--images", "nowhere"], "nowhere"),
        (["--add", "builtin"], "every image has the view builtin already"),
    ],
)
def test_mistakes_are_told_and_change_nothing(photos, tmp_path, arguments, said):
    model = tmp_path / "m.hycal"
    hycal("learn", model, photos / "learn", "-q")
    before = model.read_bytes()
    assert said in run_hycal("views", model, *arguments).output.replace("\n", " ")
    assert model.read_bytes() == before and Project(model).state.version == 1
