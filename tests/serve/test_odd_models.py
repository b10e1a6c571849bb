"""Model files that `serve` did not make: other methods, labels that are numbers, classes without images."""

from __future__ import annotations

import time

import numpy as np
import pytest

from hycal import METHODS, NCM, HyCal
from hycal.project import Project
from hycal.project.sealed import seal
from hycal.serve.pile.images import ImagePile
from hycal.serve.service import Service
from tests.support.encoders import ColourEncoder
from tests.support.services import client_of, files, new_service, picture, teach

READS = ("info", "classes", "accuracy", "map", "history")


def served(path, classifier):
    classifier.save(path)
    return client_of(Service(Project(path, journal=True), ColourEncoder()))


def rows(count: int) -> np.ndarray:
    return np.abs(np.random.default_rng(count).normal(size=(count, 48)))


def test_labels_that_are_numbers(tmp_path):
    with served(tmp_path / "m.hycal", HyCal(fusion="image").fit(rows(6), [1, 1, 2, 2, 3, 3])) as client:
        for path in READS:
            assert client.get(f"/api/{path}").status_code == 200, path
        seen = client.post("/api/classify?why=true", files=files(picture("red"))).json()["answers"][0]
        assert seen["candidates"][0]["label"] in ("1", "2", "3")
        answer = client.post("/api/correct", json={"image": seen["image"], "label": "colour/red"})
        assert answer.status_code == 400
        assert "one kind" in answer.json()["detail"]
        assert client.post("/api/forget", json={"name": "2"}).json()["images"] == {"2": 2}


def test_classes_that_have_no_images_yet(tmp_path):
    text = rows(2) / np.linalg.norm(rows(2), axis=1, keepdims=True)
    clf = METHODS["ZeroShot"]().fit(rows(2), ["a/x", "a/y"], domain="a", text={"a/x": text[0], "a/y": text[1]})
    clf.announce({"a/z": text[0]}, domain="a")
    with served(tmp_path / "m.hycal", clf) as client:
        for path in READS:
            assert client.get(f"/api/{path}").status_code == 200, path
        assert client.post("/api/classify?why=true", files=files(picture("red"))).status_code == 200


def test_the_map_of_a_sealed_model_counts_images_and_shows_none(tmp_path):
    clf = NCM().fit(rows(6), ["a/x", "a/x", "a/y", "a/y", "a/z", "a/z"], domain="a").seal()
    with served(tmp_path / "m.hycal", clf) as client:
        points = client.get("/api/map").json()["points"]
        assert client.get("/api/info").json()["sealed"]
    assert [(point["label"], point["shots"], point["image"]) for point in points] == [
        ("a/x", 2, None),
        ("a/y", 2, None),
        ("a/z", 2, None),
    ]


def test_a_sealed_model_has_a_pile_with_groups_and_says_that_its_accuracy_is_not_measured(tmp_path):
    pile = tmp_path / "pile"
    pile.mkdir()
    for colour in ("red", "green", "grey"):
        for number in range(4):
            (pile / f"{colour}-{number}.png").write_bytes(picture(colour, number))
    with client_of(new_service(tmp_path / "open.hycal")) as client:
        teach(client)
    Project.create(tmp_path / "m.hycal", seal(Project(tmp_path / "open.hycal").state))
    service = Service(Project(tmp_path / "m.hycal"), ColourEncoder(), pile=ImagePile(pile))
    with client_of(service) as client:
        assert client.get("/api/accuracy").json()["overall"] is None
        while client.get("/api/pile").json()["embedded"] < 12:
            time.sleep(0.02)
        asked = client.post("/api/pile/next", json={"person": "0" * 32, "most": 6}).json()
        assert asked["images"]
        groups = client.get("/api/pile/groups").json()["groups"]
        grouped = {service.image(image).name.partition("-")[0] for group in groups for image in group["images"]}
        assert groups and "red" not in grouped  # what fits a class is in no group


@pytest.mark.parametrize("method", [NCM, *(METHODS[name] for name in ("SLDA", "FeCAM", "RanPAC"))])
def test_other_methods(tmp_path, method):
    with served(tmp_path / "m.hycal", method().fit(rows(8), ["a/x", "a/x", "a/y", "a/y"] * 2, domain="a")) as client:
        for path in READS:
            assert client.get(f"/api/{path}").status_code == 200, path
        told = client.post("/api/classify?why=true", files=files(picture("red"))).json()["answers"][0]
        assert told["candidates"][0]["evidence"]["parts"] == []
        done = client.post("/api/correct", json={"image": told["image"], "label": "a/new"})
        assert done.status_code == 200
        assert Project(tmp_path / "m.hycal").state.hash == done.json()["after"]
