"""The choice of method and encoder over HTTP, and redo."""

from __future__ import annotations

import pytest

from tests.support.encoders import TinyEncoder
from tests.support.services import files, picture


def method_of(client) -> str:
    return client.get("/api/info").json()["method"]


def test_redo_makes_the_change_again_once_and_only_on_the_model_that_is_meant(taught):
    learned = taught.get("/api/info").json()
    undone = taught.post("/api/undo", json={"only_if": learned["model"]}).json()
    assert undone["info"]["undo"] is None and undone["info"]["redo"] == "learning of 6 images of 2 classes"
    assert taught.post("/api/redo", json={"only_if": learned["model"]}).status_code == 409
    redone = taught.post("/api/redo", json={"only_if": undone["after"]}).json()
    assert redone["after"] == learned["model"] and [row["shots"] for row in redone["rows"]] == [3, 3]
    assert redone["info"]["redo"] is None and taught.post("/api/redo").status_code == 400


def test_the_method_is_changed_with_undo_and_every_answer_is_of_the_new_one(taught, service):
    image = taught.post("/api/images", files=files(picture("red", 9))).json()["images"][0]["image"]

    def scores() -> list[float]:
        answer = taught.post("/api/answers?unknown=0.05", json={"images": [image]}).json()["answers"][0]
        return [value for one in answer["candidates"] for value in (one["score"], one["probability"])]

    before = {"scores": scores(), "accuracy": taught.get("/api/accuracy").json()["overall"]}
    receipt = taught.post("/api/method", json={"method": "ncm"}).json()
    assert (receipt["what"], receipt["info"]["method"]) == ("from HyCal to NCM", "NCM")
    assert receipt["info"]["undo"] == "change of method from HyCal to NCM" and receipt["undoable"]
    after, rows = scores(), [service.image(image).row]
    assert after != before["scores"]
    assert after[1] == pytest.approx(service.state.classifier.predict_proba(rows).max())  # its own temperature
    taught.post("/api/undo")
    assert method_of(taught) == "HyCal" and scores() == before["scores"]
    assert taught.post("/api/redo").json()["after"] == receipt["after"] and scores() == after
    for method, said in (("forest", "There is no method 'forest'"), ("ZeroShot", "needs a text embedding")):
        answer = taught.post("/api/method", json={"method": method})
        assert answer.status_code == 400 and said in answer.json()["detail"]


def test_methods_are_listed_with_their_problem_and_tried_one_by_one(taught, client):
    methods = {one["name"]: one for one in taught.get("/api/choices").json()["methods"]}
    assert methods["NCM"] == {"name": "NCM", "summary": "Nearest class mean, by angle or by distance.", "problem": ""}
    assert "embeds class names" in methods["ZeroShot"]["problem"]
    tried = taught.get("/api/trial", params={"method": "ncm"}).json()
    assert tried["method"] == "NCM" and tried["overall"] == {"right": 6, "total": 6} and tried["seconds"] > 0
    assert tried["estimate"]["low"] < tried["estimate"]["high"] == 1
    assert "needs a text embedding" in taught.get("/api/trial", params={"method": "ZeroShot"}).json()["problem"]
    assert taught.get("/api/trial", params={"method": "forest"}).status_code == 400
    assert method_of(taught) == "HyCal"


def test_until_something_is_learned_the_encoder_and_the_method_are_free(client, service, monkeypatch):
    monkeypatch.setattr("hycal.serve.service.load_encoder", lambda name: TinyEncoder(seed=int(name)))
    assert client.get("/api/choices").json()["encoder_is_free"]
    stale = client.post("/api/images", files=files(picture("red"))).json()["images"][0]["image"]
    started = client.post("/api/encoder", json={"encoder": "1"}).json()
    assert (started["what"], started["info"]["encoder"], started["undoable"]) == ("HyCal on tiny-1", "tiny-1", False)
    assert client.post("/api/method", json={"method": "NCM"}).json()["info"]["method"] == "NCM"
    # what the other encoder embedded is gone: its rows could not be compared
    assert client.post("/api/learn", json={"labels": {stale: "colour/red"}}).status_code == 404
    fresh = client.post("/api/images", files=files(picture("red"))).json()["images"][0]["image"]
    assert client.post("/api/learn", json={"labels": {fresh: "colour/red"}}).status_code == 200
    assert service.state.space.name == "tiny-1" and method_of(client) == "NCM"
    rows = {"rows": [[1.0] * 13] * 2}
    assert "more than 12 numbers" in client.post("/api/classify-embeddings", json=rows).json()["detail"]

    assert not client.get("/api/choices").json()["encoder_is_free"]
    refused = client.post("/api/encoder", json={"encoder": "2"})
    assert refused.status_code == 409 and "hycal learn NEW.hycal FOLDER --encoder" in refused.json()["detail"]
    client.post("/api/undo")  # nothing is learned, but the redo still holds rows of this encoder
    assert client.post("/api/encoder", json={"encoder": "2"}).status_code == 409


def test_a_class_alone_is_enough_where_one_domain_has_it_and_a_new_one_needs_its_domain(taught):
    image = taught.post("/api/images", files=files(picture("red", 8))).json()["images"][0]["image"]
    refused = taught.post("/api/correct", json={"image": image, "label": "green"})
    assert refused.status_code == 400 and "name its domain too: colour/green" in refused.json()["detail"]
    assert taught.post("/api/learn", json={"labels": {image: "green"}}).status_code == 400
    assert taught.post("/api/correct", json={"image": image, "label": "red"}).json()["images"] == {"colour/red": 1}
    taught.post("/api/undo")
    assert taught.post("/api/learn", json={"labels": {image: "red"}}).json()["images"] == {"colour/red": 1}


def test_a_correction_does_not_use_the_calibration_of_another_method(taught, service):
    image = taught.post("/api/classify", files=files(picture("red", 9))).json()["answers"][0]["image"]
    taught.post("/api/method", json={"method": "NCM"})
    answer = taught.post("/api/correct", json={"image": image, "label": "red"}).json()["answer"]
    found = service.state.classifier.predict_proba([service.image(image).row]).max()
    assert answer["candidates"][0]["probability"] == pytest.approx(found)
