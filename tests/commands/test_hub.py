"""`hycal hub`: a model as a folder of the hub, with a card, and back; the library of the hub reads the card."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import ModelCard

from examples.photos import write_digits
from hycal import load
from hycal.hub import CardFacts, model_card
from hycal.project import Arrival, Example, Project, Space, empty_state
from tests.support.commands import hycal, hycal_error, run_python
from tests.support.local_hub import local_hub


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYCAL_CACHE", str(folder / "cache"))
        write_digits(folder / "photos" / "low", range(4), first=0, images=12)
        write_digits(folder / "photos" / "test" / "low", range(4), first=60, images=5)
        hycal("learn", folder / "m.hycal", folder / "photos" / "low", "--yes", "--quiet")
    return folder


@pytest.fixture
def cache(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYCAL_CACHE", str(photos / "cache"))


def test_a_folder_has_a_sealed_model_and_comes_back(photos: Path, cache: None, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    said = hycal("hub", "save", photos / "m.hycal", folder, "--licence", "mit", "--test", photos / "photos" / "test")
    assert "it holds counts and means of classes" in said
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    names = [path.name.encode() for path in (photos / "photos" / "low").rglob("*.png")]
    content = b"".join(path.read_bytes() for path in folder.iterdir())
    assert not any(name in content for name in names), "the name of an image"
    assert json.loads((folder / "config.json").read_text())["id2label"]["3"] == "low/3"
    hycal("hub", "load", folder, "--out", tmp_path / "back.hycal")
    rows = np.random.default_rng(0).normal(size=(5, 512)).astype(np.float32)
    expected = load(folder / "model.safetensors").decision_function(rows)
    np.testing.assert_array_equal(load(tmp_path / "back.hycal").decision_function(rows), expected)


def test_the_hub_reads_the_card(photos: Path, cache: None, tmp_path: Path) -> None:
    test = photos / "photos" / "test"
    hycal("hub", "save", photos / "m.hycal", tmp_path / "x", "--licence", "cc-by-4.0", "--test", test)
    card = ModelCard.load(tmp_path / "x" / "README.md")
    assert (card.data.license, card.data.library_name) == ("cc-by-4.0", "hycal")
    assert {"few-shot", "HierarchicalHyCal", "builtin"} <= set(card.data.tags)
    expected, tested = card.data.eval_results
    assert 0.5 < expected.metric_value < 1 and "90% interval" in expected.metric_name
    assert "on 20 test images, 90% interval" in tested.metric_name
    for part in ("## Limits", "## What the file holds", "This file is sealed", "| low/3 | 12 |", "pip install"):
        assert part in card.text


def test_an_open_model_says_what_it_shows(photos: Path, cache: None, tmp_path: Path) -> None:
    said = hycal("hub", "save", photos / "m.hycal", tmp_path / "x", "--open")
    assert "thumbnails and file names (seal it to share it)" in said
    assert "**not sealed**" in (tmp_path / "x" / "README.md").read_text()
    assert "its author chose none" in (tmp_path / "x" / "README.md").read_text()


def test_an_open_model_does_not_show_what_was_forgotten(photos: Path, cache: None, tmp_path: Path) -> None:
    model = tmp_path / "m.hycal"
    model.write_bytes((photos / "m.hycal").read_bytes())
    hycal("forget", model, "low/2")
    name = next((photos / "photos" / "low" / "2").iterdir()).name.encode()
    assert name in model.read_bytes()
    hycal("hub", "save", model, tmp_path / "x", "--open")
    assert name not in (tmp_path / "x" / "model.safetensors").read_bytes()


def test_learned_images_are_no_test(photos: Path, cache: None, tmp_path: Path) -> None:
    said = hycal_error("hub", "save", photos / "m.hycal", tmp_path / "x", "--test", photos / "photos" / "low")
    assert "48 images of" in said and "were learned, so they test nothing" in said
    assert not (tmp_path / "x").exists()


def test_what_cannot_be_sealed_is_said(photos: Path, cache: None, tmp_path: Path) -> None:
    hycal("remake", photos / "m.hycal", "TipAdapter", "--out", tmp_path / "tip.hycal")
    assert "TipAdapter cannot be sealed" in hycal_error("hub", "save", tmp_path / "tip.hycal", tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_nothing_is_replaced_and_nothing_is_half_written(photos: Path, cache: None, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    assert "exists, so nothing was written" in hycal_error("hub", "save", photos / "m.hycal", tmp_path / "x")
    hycal("hub", "save", photos / "m.hycal", tmp_path / "y")
    assert "not replaced" in hycal_error("hub", "load", tmp_path / "y", "--out", photos / "m.hycal")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "y"]


def test_folders_that_hold_no_model(tmp_path: Path) -> None:
    assert "has no model.safetensors" in hycal_error("hub", "load", tmp_path, "--out", tmp_path / "m.hycal")
    (tmp_path / "model.safetensors").write_bytes(b"\x10" * 100)
    hycal_error("hub", "load", tmp_path, "--out", tmp_path / "m.hycal")
    assert not (tmp_path / "m.hycal").exists()
    said = hycal_error("hub", "load", "nothing here", "--out", tmp_path / "m.hycal")
    assert "neither a folder nor a repository" in said


def test_names_in_a_card_are_text_alone(tmp_path: Path) -> None:
    hostile = ["a/![x](http://evil.example/y.png)", "a/<script>|`", "a/plain"]
    project = Project(tmp_path / "m.hycal", empty_state(Space("tiny\nlicense: x", "tiny", 3), has_text=False))
    rows = np.eye(3, dtype=np.float32)
    project.learn([Arrival(label, Example(row)) for label, row in zip(hostile, rows, strict=True)])
    card = model_card(project.state, CardFacts("---\nlicense: apache-2.0\n---\n# [x](y)", "mit"))
    assert ModelCard(card).data.license == "mit"
    assert "](http" not in card.replace("](https://pypi.org/project/hycal/)", "")
    assert "<script>" not in card


def test_a_model_goes_to_the_hub_and_comes_back(photos: Path, tmp_path: Path) -> None:
    """By the library of the hub itself, to a hub on this machine."""
    with local_hub() as hub:
        variables = {"HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path / "home"), "HF_TOKEN": "hf_" + "x" * 34}

        def run(*arguments: object) -> str:
            program = ("-c", "from hycal.cli import app; app()")
            done = run_python(*program, "hub", *arguments, environment={**variables, "HYCAL_CACHE": str(tmp_path)})
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        said = run("push", photos / "m.hycal", "me/digits", "--licence", "mit")
        assert "me/digits: 4 classes; it holds counts and means" in said
        assert sorted(hub.files["me/digits"]) == ["README.md", "config.json", "model.safetensors"]
        assert hub.private == {"me/digits": True}
        hub.files["me/digits"]["run.py"] = b"print('never fetched')"
        run("load", "me/digits", "--out", tmp_path / "back.hycal")
        assert not [path for path in hub.asked if "run.py" in path]
    assert load(tmp_path / "back.hycal").classes_.tolist() == [f"low/{number}" for number in range(4)]


def test_push_without_a_network_says_so(
    photos: Path, cache: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    assert "me/x could not be uploaded" in hycal_error("hub", "push", photos / "m.hycal", "me/x")
    assert "expected OWNER/NAME" in hycal_error("hub", "push", photos / "m.hycal", "../x")
