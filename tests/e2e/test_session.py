"""A session of the command line from an empty folder, on real images with the built-in encoder."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from PIL import Image
from typer.testing import CliRunner

from examples.photos import write_digits
from hycal import HyCal, load
from hycal.cli import app
from hycal.embedding import EmbeddingCache
from hycal.embedding.sources import content_hash
from hycal.encoders import load_encoder


def hycal(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result.stdout


def ask(*arguments: object) -> object:
    return json.loads(hycal(*arguments, "--json"))


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Two domains to learn, one folder to test, an own cache."""
    root = tmp_path_factory.mktemp("session")
    write_digits(root / "low", range(3), first=0, images=6)
    write_digits(root / "high", range(7, 10), first=0, images=6)
    write_digits(root / "test" / "low", range(3), first=50, images=2)
    (root / "high" / "7" / "notes.txt").write_text("not an image")
    return root


def test_a_session(photos, monkeypatch):
    monkeypatch.chdir(photos)
    monkeypatch.setenv("HYCAL_CACHE", str(photos / "cache"))

    learned = ask("learn", "digits.hycal", "low")
    assert learned["images"] == {"low/0": 6, "low/1": 6, "low/2": 6} and not learned["skipped"]
    learned = ask("learn", "digits.hycal", "high", "--domain", "tall")
    assert learned["images"] == {"tall/7": 6, "tall/8": 6, "tall/9": 6}
    assert [item["reason"] for item in learned["skipped"]] == ["not an image of a known format"]
    again = ask("learn", "digits.hycal", "low")
    assert not again["changed"] and len(again["skipped"]) == 18
    assert [entry["images"] for entry in ask("classes", "digits.hycal")] == [6] * 6
    assert load("digits.hycal").counts_.tolist() == [6] * 6, "the project is a model file"

    answers = [json.loads(line) for line in hycal("predict", "digits.hycal", "test", "--json").splitlines()]
    assert len(answers) == 6 and all(len(answer["answers"]) == 5 for answer in answers)
    right = [answer["answers"][0]["label"] == f"low/{Path(answer['file']).parent.name}" for answer in answers]
    assert sum(right) >= 4
    rows = list(csv.DictReader(io.StringIO(hycal("predict", "digits.hycal", "test", "--csv", "--top", "1"))))
    assert [row["label"] for row in rows] == [answer["answers"][0]["label"] for answer in answers]
    why = json.loads(hycal("predict", "digits.hycal", answers[0]["file"], "--explain", "--json"))
    best = why["answers"][0]["evidence"]
    assert best["images"] == 6 and len(best["nearest"]) == 3 and 0 < best["weight"] < 1
    assert "nearest of 6 learned" in hycal("predict", "digits.hycal", answers[0]["file"], "--explain")

    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    Image.fromarray(noise).save("noise.png")
    learned_one = next((photos / "low" / "0").iterdir())
    asked = ("predict", "digits.hycal", learned_one, "noise.png", "--unknown", "0.05")
    assert [json.loads(line)["unknown"] for line in hycal(*asked, "--json").splitlines()] == [False, True]
    marks = list(csv.DictReader(io.StringIO(hycal(*asked, "--csv", "--top", "1"))))
    assert [row["unknown"] for row in marks] == ["false", "true"]
    assert hycal(*asked).count("unknown, like nothing that was learned; nearest: ") == 1
    assert "unknown" not in answers[0]

    tested = ask("evaluate", "digits.hycal", "test")
    assert tested["overall"] == {"right": sum(right), "total": 6, "accuracy": sum(right) / 6}
    assert tested["shots"] == {"5-9": tested["overall"]} and tested["learned_before"] == 0
    assert ask("evaluate", "digits.hycal", "low")["learned_before"] == 18
    assert "accuracy" in hycal("evaluate", "digits.hycal", "test")

    advice = ask("advise", "digits.hycal")
    assert advice["overall"]["total"] == 36 and len(advice["classes"]) == 6
    assert "leave-one-out accuracy" in hycal("advise", "digits.hycal")

    quick = ("--only", "HyCal", "--only", "HierarchicalHyCal", "--only", "ZeroShot")
    tried = ask("methods", "digits.hycal", *quick)
    assert tried["method"] == "HyCal" and {entry["method"] for entry in tried["methods"]} == set(quick[1::2])
    assert tried["methods"][0]["total"] == 36 and "text" in tried["methods"][-1]["problem"]
    assert "HyCal (this model)" in hycal("methods", "digits.hycal", *quick)
    hycal("methods", "digits.hycal", "--only", "Guess", code=1)
    content = Path("digits.hycal").read_bytes()
    remade = ask("remake", "digits.hycal", "HierarchicalHyCal", "--out", "other.hycal")
    assert remade["changed"] and ask("info", "other.hycal")["method"] == "HierarchicalHyCal"
    hycal("remake", "digits.hycal", "HierarchicalHyCal", "--out", "other.hycal", code=1)
    assert Path("digits.hycal").read_bytes() == content

    # A wrong answer is corrected, and the image is told right from then on.
    image = answers[0]["file"]
    hycal("correct", "digits.hycal", image, "low/new")
    assert json.loads(hycal("predict", "digits.hycal", image, "--json"))["answers"][0]["label"] == "low/new"
    undone = ask("undo", "digits.hycal")
    assert undone["after"] == learned["after"]

    # Forgetting a class is never having learned it; so is forgetting one image.
    ask("learn", "never.hycal", "low", "--domain", "low")
    forgotten = ask("forget", "digits.hycal", "tall")
    assert forgotten["after"] == ask("info", "never.hycal")["hash"] and forgotten["undoable"]
    assert ask("diff", "digits.hycal", "never.hycal")["equal"]
    first = sorted((photos / "low" / "0").iterdir())[0]
    encoder = load_encoder("builtin")
    with EmbeddingCache.of(encoder, photos / "cache" / "embeddings") as store:
        cached = store.known()
        assert content_hash(first.read_bytes()) in cached
    damaged = photos / "damaged"
    damaged.mkdir()
    (damaged / "index.sqlite").write_text("no database")
    content = Path("digits.hycal").read_bytes()
    hycal("forget", "digits.hycal", first, "--for-good", "--cache", damaged, code=1)
    assert Path("digits.hycal").read_bytes() == content
    lost = ask("forget", "digits.hycal", first, "--for-good")
    tall = list((photos / "high").rglob("*.png"))
    assert lost["images"] == {"low/0": 1} and lost["removed_from_cache"] == 1 + len(tall), "held by the undo until now"
    with EmbeddingCache.of(encoder, photos / "cache" / "embeddings") as store:
        assert store.known() == cached - {content_hash(path.read_bytes()) for path in (first, *tall)}
    assert "1 only in never.hycal" in hycal("diff", "digits.hycal", "never.hycal", "--strict", code=3)
    hycal("undo", "digits.hycal", code=1)

    history = ask("info", "digits.hycal", "--history", "100")["history"]
    actions = [entry["action"] for entry in history]
    assert actions == ["learn", "learn", "correct", "undo", "forget", "forget"]
    for shown, expected in {0: [], 2: actions[-2:], 6: actions, 7: actions}.items():
        assert [entry["action"] for entry in ask("info", "digits.hycal", "--history", shown)["history"]] == expected

    ask("rename", "digits.hycal", "low", "small")
    assert {entry["label"] for entry in ask("classes", "digits.hycal")} == {"small/0", "small/1", "small/2"}
    ask("learn", "tall.hycal", "high", "--domain", "tall")
    merged = ask("merge", "digits.hycal", "tall.hycal", "--out", "both.hycal")
    assert merged["images"] == {"tall/7": 6, "tall/8": 6, "tall/9": 6}
    info = ask("info", "both.hycal")
    assert info["domains"] == {"small": {"classes": 3, "images": 17}, "tall": {"classes": 3, "images": 18}}
    assert [entry["action"] for entry in info["history"]][-2:] == ["rename", "merge"]
    assert info["encoder"] == "builtin" and info["bytes"] == Path("both.hycal").stat().st_size
    assert "can be undone" in hycal("info", "both.hycal")

    ask("export", "both.hycal", "--onnx", "both.onnx")
    model = load("both.hycal")
    session = onnxruntime.InferenceSession("both.onnx", providers=["CPUExecutionProvider"])
    labels = session.run(["label"], {"embeddings": model.records_.stacked()})[0]
    assert labels.tolist() == model.predict(model.records_.stacked()).tolist()


def test_a_class_folder_that_is_a_link_is_left_out_and_said(photos, monkeypatch, tmp_path):
    monkeypatch.setenv("HYCAL_CACHE", str(photos / "cache"))
    (tmp_path / "linked" / "0").mkdir(parents=True)
    for path in (photos / "low" / "0").iterdir():
        (tmp_path / "linked" / "0" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "linked" / "1").symlink_to(photos / "low" / "1")
    learned = ask("learn", tmp_path / "m.hycal", tmp_path / "linked")
    assert learned["images"] == {"linked/0": 6}
    (skipped,) = learned["skipped"]
    assert skipped == {"file": str(tmp_path / "linked" / "1"), "reason": "a link to a folder, not followed"}


def test_models_of_the_library_have_labels_without_domains(photos, monkeypatch, tmp_path):
    monkeypatch.setenv("HYCAL_CACHE", str(photos / "cache"))
    ask("learn", tmp_path / "own.hycal", photos / "low")
    model = load(tmp_path / "own.hycal")
    rows = np.concatenate([record.samples.rows for record in model.records_.ordered])
    plain = HyCal(fusion="image").fit(rows, np.repeat(["0", "1", "2"], 6))
    plain.encoder_ = model.encoder_
    plain.save(tmp_path / "plain.hycal")
    asked = ("--encoder", "builtin")
    assert ask("evaluate", tmp_path / "plain.hycal", photos / "test", *asked)["overall"]["total"] == 6
    image = next((photos / "test" / "low" / "1").iterdir())
    assert ask("correct", tmp_path / "plain.hycal", image, "1", *asked)["images"] == {"1": 1}


def test_what_can_go_wrong(photos, monkeypatch, tmp_path):
    monkeypatch.chdir(photos)
    monkeypatch.setenv("HYCAL_CACHE", str(photos / "cache"))
    model = tmp_path / "m.hycal"
    hycal("learn", model, "low")
    before = model.read_bytes()
    (tmp_path / "empty").mkdir()
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "x.txt").write_text("no")
    (tmp_path / "broken" / "cat").mkdir(parents=True)
    (tmp_path / "broken" / "cat" / "1.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    (tmp_path / "other").write_text("hello")
    image = next((photos / "low" / "0").iterdir())
    for says, arguments in {
        "does not exist": ("learn", model, "nowhere"),
        "no files": ("learn", model, tmp_path / "empty"),
        "no images in class folders": ("learn", model, tmp_path / "flat"),
        "None of the 1 files can be used": ("learn", model, tmp_path / "broken"),
        "There is no encoder": ("learn", tmp_path / "new.hycal", "low", "--encoder", "nonsense"),
        "learned with encoder 'builtin'": ("learn", model, "high", "--encoder", "clip-vit-b16"),
        "is a HyCal model": ("learn", model, "high", "--method", "NCM"),
        "There is no method 'Best'": ("learn", tmp_path / "new.hycal", "low", "--method", "Best"),
        "nor contain a slash": ("learn", model, "low", "--domain", "a/b"),
        "There is no model at": ("predict", tmp_path / "none.hycal", image),
        "not a readable safetensors file": ("predict", tmp_path / "other", image),
        "There is no file or folder": ("predict", model, "nowhere.jpg"),
        "expected a share between 0 and 1": ("predict", model, image, "--unknown", "5"),
        "exclude each other": ("predict", model, image, "--json", "--csv"),
        "There are no files in": ("predict", model, tmp_path / "empty"),
        "Did you mean 'low/1'": ("forget", model, "low/11"),
        "does not know the image": ("forget", model, next((photos / "high" / "7").iterdir())),
        "is no class": ("correct", model, image, "zero"),
        "cannot be used": ("correct", model, tmp_path / "broken" / "cat" / "1.png", "low/0"),
        "exists already": ("merge", model, model, "--out", model),
        "belongs to a class of the model": ("evaluate", model, "high"),
        "ends in .onnx": ("export", model, "--onnx", tmp_path / "x.txt"),
    }.items():
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 1, arguments
        assert says in result.output.replace("\n", " "), (says, result.output)
        assert "Traceback" not in result.output
    assert model.read_bytes() == before and not (tmp_path / "new.hycal").exists()
    assert CliRunner().invoke(app, ["predict", str(model)]).exit_code == 2

    mixed = hycal("predict", model, image, tmp_path / "broken" / "cat" / "1.png", "--strict", "--json", code=3)
    good, bad = (json.loads(line) for line in mixed.splitlines())
    assert "answers" in good and "not an image" in bad["error"]
    hycal("predict", model, tmp_path / "broken", code=1)
