"""Which images of a folder, manifest or table are learned, and which ones a test uses."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import hycal.encoders
from hycal.cli import app
from hycal.embedding import EmbeddingTable, write_table
from hycal.errors import HyCalError
from hycal.gravity import Gravity
from hycal.project import Arrival, State
from hycal.project.inputs import held_out_images, to_learn
from tests.support.encoders import TinyEncoder
from tests.support.images import picture
from tests.support.projects import SPACE, WIDTH, example, new_project

COPIES = {"train": 5, "val": 2, "test": 3, "": 4}
LEARNED = {"art/one": 4, "art/two": 4, "digit/one": 5, "digit/two": 5}
JUDGING = {"art/one": 4, "art/two": 4, "digit/one": 5, "digit/two": 5}


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two domains of two classes: one with a training, a validation and a test split, one without splits."""
    places = [f"digit/{split}/{name}" for split in ("train", "val", "test") for name in ("one", "two")]
    for number, place in enumerate([*places, "art/one", "art/two"]):
        folder = tmp_path / "photos" / place
        folder.mkdir(parents=True)
        for copy in range(COPIES.get(place.split("/")[1], COPIES[""])):
            picture(100 * number + copy).save(folder / f"{copy}.png")
    return tmp_path / "photos"


@pytest.fixture
def state(tmp_path: Path) -> State:
    project = new_project(tmp_path / "model.hycal")
    project.learn([Arrival(label, example(label, 0)) for label in LEARNED])
    return project.state


def run(*arguments: object) -> dict:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_evaluate_and_gravity_judge_a_model_on_the_same_images(tmp_path, photos, monkeypatch):
    monkeypatch.setattr(hycal.encoders, "load_encoder", lambda name, **options: TinyEncoder())
    monkeypatch.setattr("hycal.project.encoder.load_encoder", lambda name, **options: TinyEncoder())
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path / "cache"))
    model = tmp_path / "model.hycal"
    assert run("learn", model, photos)["images"] == LEARNED
    tested, pulled = run("evaluate", model, photos), run("gravity", model, photos)
    digit, art = 2 * (COPIES["val"] + COPIES["test"]), 2 * COPIES[""]
    assert {name: score["total"] for name, score in tested["domains"].items()} == {"digit": digit, "art": art}
    flow = Gravity.from_json(pulled["after"]).flow
    assert dict(zip(flow.domains, flow.asked.tolist(), strict=True)) == {"digit": digit, "art": art}


def test_what_is_learned_and_what_judges_share_only_the_images_of_no_split(photos, state):
    images, left_out = to_learn(photos)
    judging = held_out_images(photos, state)
    learned, held = {image.source.name for image in images}, {image.name for image in judging.images}
    assert learned & held == {str(path) for path in (photos / "art").rglob("*.png")}
    assert learned | held == {str(path) for path in photos.rglob("*.png")}
    assert Counter(image.label for image in images) == LEARNED and Counter(judging.labels) == JUDGING
    assert left_out.splits == {"val": 4, "test": 6} and judging.left_out.splits == {"train": 10}
    assert [item.reason for item in judging.left_out.all] == ["10 images of the split 'train'"]


def test_a_manifest_and_a_table_say_the_same_as_the_folder(tmp_path, photos, state):
    images = [path.relative_to(photos) for path in sorted(photos.rglob("*.png"))]
    places = [(path.parts[0], path.parts[1] if len(path.parts) == 4 else "", path.parts[-2]) for path in images]
    lines = [",".join([path.as_posix(), *place]) for path, place in zip(images, places, strict=True)]
    (photos / "list.csv").write_text("\n".join(["file,domain,split,label", *lines]))
    domains, splits, labels = (np.array(column) for column in zip(*places, strict=True))
    rows = np.random.default_rng(0).normal(size=(len(images), WIDTH)).astype(np.float32)
    files = np.array([path.as_posix() for path in images])
    table = EmbeddingTable(rows, files, labels, domains, splits, "tiny", SPACE.fingerprint)
    write_table(tmp_path / "photos.npz", table)
    held, listed = held_out_images(photos / "list.csv", state), held_out_images(tmp_path / "photos.npz", state)
    assert Counter(held.labels) == Counter(listed.labels) == JUDGING
    np.testing.assert_array_equal(listed.images, rows[splits != "train"])
    assert held.left_out.splits == listed.left_out.splits == {"train": 10}
    nowhere = np.full(len(images), "")
    write_table(tmp_path / "plain.npz", EmbeddingTable(rows, files, labels, nowhere, splits, "tiny", SPACE.fingerprint))
    with pytest.raises(HyCalError, match=r"None of the 18 images .* the first label is 'one'"):  # of two domains
        held_out_images(tmp_path / "plain.npz", state)


def test_a_class_of_another_domain_counts_where_only_one_has_that_name(tmp_path, photos):
    project = new_project(tmp_path / "model.hycal")
    project.learn([Arrival("letter/one", example("letter/one", 0)), Arrival("art/two", example("art/two", 0))])
    judging = held_out_images(photos, project.state)
    assert Counter(judging.labels) == {"letter/one": 9, "art/two": 9}
    with pytest.raises(HyCalError, match=r"None of the 0 images in .* belongs to a class of the model"):
        held_out_images(photos / "digit" / "train" / "one", project.state)
