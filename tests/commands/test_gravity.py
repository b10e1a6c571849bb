from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

import hycal.encoders
from hycal import NCM, SLDA, HyCal
from hycal.embedding import EmbeddingTable, embed, write_table
from hycal.embedding.sources import ImageFile
from hycal.embedding.store import space_fingerprint
from hycal.gravity import Gravity
from hycal.storage import model_file
from tests.support.commands import run_hycal
from tests.support.encoders import TinyEncoder
from tests.support.images import picture

LABELS = [f"{domain}/{label}" for domain in ("art", "digit") for label in ("one", "two", "three")]


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Put the tiny encoder in the place of every named one, and the cache in the test's folder."""
    monkeypatch.setattr(hycal.encoders, "load_encoder", lambda name, **options: TinyEncoder())
    monkeypatch.setattr("hycal.project.encoder.load_encoder", lambda name, **options: TinyEncoder())
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "160")


def make_images(root: Path, split: str = "") -> Path:
    """Write four random pictures of every label; they differ between splits."""
    for number, label in enumerate(LABELS):
        domain, name = label.split("/")
        folder = root / domain / split / name
        folder.mkdir(parents=True)
        for copy in range(4):
            picture(100 * number + copy + (50 if split == "test" else 0)).save(folder / f"{copy}.png")
    return root


def fitted(classifier, root: Path, tmp_path: Path, *, encoder: str | None = None) -> Path:
    paths = sorted(root.rglob("*.png"))
    rows = embed([ImageFile(path) for path in paths], TinyEncoder()).rows
    labels = [f"{path.relative_to(root).parts[0]}/{path.parent.name}" for path in paths]
    for domain in ("art", "digit"):
        own = [row for row, label in enumerate(labels) if label.startswith(domain)]
        classifier.partial_fit(rows[own], [labels[row] for row in own], domain=domain)
    classifier.encoder_ = encoder
    classifier.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def run(*arguments: object) -> Result:
    return run_hycal("gravity", *arguments)


def test_a_folder_is_embedded_and_measured_before_and_after(tmp_path: Path) -> None:
    model = fitted(
        HyCal(fusion="image"), make_images(tmp_path / "photos"), tmp_path, encoder=space_fingerprint(TinyEncoder())
    )
    result = run(model, tmp_path / "photos", "--encoder", "tiny", "--html", tmp_path / "gravity.html")
    assert result.exit_code == 0, result.output
    assert "24 images encoded" in result.output
    assert "HyCal[fusion=image,metric=cosine] (before calibration)" in result.output
    assert "HyCal[fusion=image] (after calibration)" in result.output
    page = (tmp_path / "gravity.html").read_text()
    assert page.count("<svg") == 2
    assert not re.search(r'(src|href)="(?!#)[^"]*//', re.sub(r'xmlns(:\w+)?="[^"]*"', "", page))
    again = run(model, tmp_path / "photos", "--encoder", "tiny")
    assert "no image was encoded, 24 in the cache" in again.output


def test_json_is_the_whole_measurement_and_only_held_out_images_count(tmp_path: Path) -> None:
    train = make_images(tmp_path / "learned")
    make_images(tmp_path / "photos", "train")
    make_images(tmp_path / "photos", "test")
    (tmp_path / "photos" / "art" / "test" / "never").mkdir()
    picture(7).save(tmp_path / "photos" / "art" / "test" / "never" / "0.png")
    result = run(fitted(SLDA(), train, tmp_path), tmp_path / "photos", "--encoder", "tiny", "--json")
    assert result.exit_code == 0, result.output
    assert "24 images of the split 'train'" in result.output
    assert "24 images encoded" in result.output  # and no other
    assert "the model has no class art/never" in " ".join(result.output.split())
    document = json.loads(result.stdout)
    assert {name: one["method"] for name, one in document.items()} == {"before": "NCM", "after": "SLDA"}
    assert Gravity.from_json(document["after"]).flow.counts.sum() == 24


def test_learned_images_are_noted_and_others_are_not(tmp_path: Path) -> None:
    model, photos = tmp_path / "m.hycal", make_images(tmp_path / "photos")
    assert run_hycal("learn", model, photos, "-q").exit_code == 0
    note = "24 of these images were learned, so fewer of them cross between domains than new ones would"
    assert note in run(model, photos).stderr
    assert "note" not in run(model, make_images(tmp_path / "others", "test")).output


def test_only_a_page_of_hycal_is_replaced_or_any_file_by_force(tmp_path: Path) -> None:
    model, page = fitted(NCM(), make_images(tmp_path / "photos"), tmp_path), tmp_path / "page.html"
    page.write_text("<html>my page</html>")
    arguments = (model, tmp_path / "photos", "--encoder", "tiny", "--html", page)
    refused = run(*arguments)
    assert refused.exit_code == 1 and "not replaced" in refused.output and "encoded" not in refused.output
    assert page.read_text() == "<html>my page</html>"
    assert [run(*arguments, *more).exit_code for more in (["--force"], [])] == [0, 0]
    assert "Gravity" in page.read_text()


def test_a_table_of_embeddings_needs_no_encoder(tmp_path: Path) -> None:
    model = fitted(NCM(), make_images(tmp_path / "photos"), tmp_path, encoder="here")
    rows = np.random.default_rng(0).normal(size=(6, 12)).astype(np.float32)
    domains, names = zip(*(label.split("/") for label in LABELS), strict=True)
    nothing = np.array([""] * 6)

    def table(fingerprint: str) -> Path:
        columns = {"files": nothing, "labels": np.array(names), "domains": np.array(domains), "splits": nothing}
        path = tmp_path / f"{fingerprint}.npz"
        write_table(path, EmbeddingTable(rows, **columns, encoder="tiny", fingerprint=fingerprint))
        return path

    result = run(model, table("here"))
    assert result.exit_code == 0, result.output
    assert "of 6 images" in result.output
    assert "before calibration" not in result.output  # a nearest mean is direction alone already
    other = run(model, table("elsewhere"))
    assert other.exit_code == 1
    assert "cannot be compared" in other.output


def test_what_cannot_be_measured_says_what_to_do(tmp_path: Path) -> None:
    photos = make_images(tmp_path / "photos")
    model = fitted(NCM(), photos, tmp_path, encoder="another space")
    for arguments, hint in (
        ([model, photos], "--encoder NAME"),
        ([model, photos, "--encoder", "tiny"], "learned in the space 'another space'"),
        ([tmp_path / "none.safetensors", photos], "none.safetensors"),
        ([model, tmp_path / "nowhere"], "does not exist"),
    ):
        result = run(*arguments)
        assert result.exit_code == 1
        assert hint in result.output.replace("\n", " ")
    strangers = tmp_path / "strangers"
    (strangers / "pets" / "cat").mkdir(parents=True)
    picture(0).save(strangers / "pets" / "cat" / "0.png")
    fitted(NCM(), photos, tmp_path)
    broken = tmp_path / "broken" / "art" / "one"
    broken.mkdir(parents=True)
    (broken / "0.png").write_bytes(b"")
    result = run(model, tmp_path / "broken", "--encoder", "tiny")
    assert result.exit_code == 1
    assert "empty file" in result.output
    result = run(model, strangers, "--encoder", "tiny")
    assert result.exit_code == 1
    assert "None of the 1 images in" in result.output
    assert "belongs to a class of the model; the first label is 'pets/cat'" in result.output


def test_a_project_file_names_its_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name that a project writes beside the model is used; here it is put there by hand."""
    model = fitted(NCM(), make_images(tmp_path / "photos"), tmp_path)
    content = model_file.read(model)
    model_file.write(
        model, model_file.Content({**content.manifest, "project": {"encoder_name": "tiny"}}, content.tensors)
    )
    asked: list[str] = []
    monkeypatch.setattr(hycal.encoders, "load_encoder", lambda name, **options: asked.append(name) or TinyEncoder())
    monkeypatch.setattr(
        "hycal.project.encoder.load_encoder", lambda name, **options: asked.append(name) or TinyEncoder()
    )
    assert run(model, tmp_path / "photos").exit_code == 0
    assert asked == ["tiny"]
