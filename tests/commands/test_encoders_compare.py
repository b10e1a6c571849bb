"""`hycal encoders compare`, and `--augment` for `hycal embed` and `hycal learn`."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from hycal.commands import _encoder_trials
from hycal.embedding import read_table
from hycal.project import Project
from tests.support.commands import hycal, hycal_error, hycal_json

TWO = ("--encoder", "builtin", "--encoder", "builtin:flip")


def test_a_folder_singles_and_the_pair_are_judged_on_the_same_images(photos):
    found = hycal_json("encoders", "compare", photos / "low", *TWO)
    assert [entry["encoder"] for entry in found["encoders"]] == ["builtin", "builtin:flip", "builtin+builtin:flip"]
    assert {entry["total"] for entry in found["encoders"]} == {18} and found["encoder"] is None
    singles, pair = found["encoders"][:2], found["encoders"][2]
    assert pair["seconds"] == sum(entry["seconds"] for entry in singles) > 0
    assert all(entry["low"] <= entry["accuracy"] <= entry["high"] for entry in found["encoders"])
    assert "pair" not in found["problems"] and f"--encoder {found['recommended']}" in found["verdict"]


def test_people_read_a_table_that_ends_in_a_recommendation(photos):
    said = hycal("encoders", "compare", photos / "low", *TWO)
    assert "processor seconds" in said and "(18 of 18)" in said
    assert said.rstrip().splitlines()[-1].startswith("builtin: nothing else is better beyond chance")


def test_what_else_can_be_compared_is_what_is_installed_or_can_be_got(photos, monkeypatch):
    alone = hycal("encoders", "compare", photos / "low", "--encoder", "builtin")
    assert "to compare more: hycal encoders get clip-vit-b16-w8, hycal encoders get dinov2-s" in alone
    missing = SimpleNamespace(missing=True)
    monkeypatch.setattr(
        _encoder_trials,
        "locate",
        lambda spec: missing if spec.name == "dinov2-s" else SimpleNamespace(missing=not spec.name.endswith("w8")),
    )
    more = hycal("encoders", "compare", photos / "low", "--encoder", "builtin").splitlines()[-1]
    assert "(--encoder clip-vit-b16-w8), hycal encoders get dinov2-s" in more


def test_a_model_finds_its_images_by_their_names_or_in_a_folder(learned, photos, monkeypatch):
    monkeypatch.chdir(photos)
    before = learned.path.read_bytes()
    inside = hycal_json("encoders", "compare", learned.path, *TWO, "--images", photos / "low")
    assert inside["encoder"] == "builtin" and {entry["total"] for entry in inside["encoders"]} == {18}
    assert "nothing is better beyond chance than builtin" in inside["verdict"]
    assert "builtin (this model)" in hycal("encoders", "compare", learned.path, *TWO, "--images", photos / "low")
    assert learned.path.read_bytes() == before


def test_what_newcomers_try(learned, photos, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "nothing" in hycal_error("encoders", "compare", tmp_path / "nothing")
    hycal_error("encoders", "compare", tmp_path / "empty")
    assert "There is no encoder 'bulltin'" in hycal_error("encoders", "compare", photos / "low", "--encoder", "bulltin")
    assert "is no model" in hycal_error("encoders", "compare", photos / "low", "--images", photos / "low")
    assert "two images of two classes" in hycal_error("encoders", "compare", photos / "low" / "1")
    missing = hycal_json("encoders", "compare", photos / "low", "--encoder", "builtin", "--encoder", "dinov2-s")
    assert "dinov2-s was not tried" in missing["problems"][0] and "encoders get dinov2-s" in missing["problems"][0]
    (tmp_path / "no.hycal").write_bytes(b"no model")
    hycal_error("encoders", "compare", tmp_path / "no.hycal")
    moved = hycal_error("encoders", "compare", learned.path, *TWO)
    assert "Name the folder that was learned: --images" in moved
    hycal("seal", learned.path, "--out", tmp_path / "sealed.hycal")
    assert "This model is sealed" in hycal_error("encoders", "compare", tmp_path / "sealed.hycal", *TWO)


def test_embed_averages_an_image_and_its_mirror_image(photos, tmp_path):
    hycal("embed", photos / "low", "--out", tmp_path / "plain.npz")
    hycal("embed", photos / "low", "--out", tmp_path / "flip.npz", "--augment", "flip")
    plain, flip = (read_table(tmp_path / f"{name}.npz") for name in ("plain", "flip"))
    assert flip.encoder == "builtin:flip" and flip.fingerprint != plain.fingerprint
    cosines = (plain.rows * flip.rows).sum(axis=1)
    assert cosines.min() > 0.7 and np.abs(plain.rows - flip.rows).max() > 0.01
    assert "no augmentation 'flop'" in hycal_error(
        "embed", photos / "low", "--out", tmp_path / "x.npz", "--augment", "flop"
    )


def test_a_model_remembers_its_augmentation_and_refuses_another(photos, tmp_path):
    path = tmp_path / "flip.hycal"
    hycal_json("learn", path, photos / "low", "--augment", "flip")
    assert Project(path).state.space.name == "builtin:flip"
    hycal_json("learn", path, photos / "high", "--domain", "tall")  # with its own encoder, by itself
    assert Project(path).state.n_images == 36
    hycal_json("learn", path, photos / "high", "--domain", "tall", "--augment", "flip")
    assert hycal("predict", path, photos / "test" / "low", "--json").count('"answers"') == 6
    assert "augmented already" in hycal_error("learn", path, photos / "low", "--augment", "crops")
    assert "cannot be compared" in hycal_error("learn", path, photos / "low", "--encoder", "builtin")
    plain = tmp_path / "plain.hycal"
    hycal_json("learn", plain, photos / "low")
    assert "cannot be compared" in hycal_error("learn", plain, photos / "low", "--augment", "flip")
    more = hycal_error("learn", plain, photos / "low", "--encoder", "builtin:flip+builtin")
    assert "Add it first: `hycal views MODEL --add builtin:flip --images FOLDER`" in more
