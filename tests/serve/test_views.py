"""A model of several encoders over HTTP: the choice of them, their views, rows of one view, and undo of a view."""

from __future__ import annotations

import numpy as np
import pytest

from hycal.encoders.encoder import CombinedEncoder, MissingEncoder
from hycal.errors import HyCalError
from hycal.project import Project, Space, empty_state
from hycal.project.encoder import encoder_space
from hycal.project.sealed import seal
from hycal.serve.service import Service
from tests.support.encoders import ColourEncoder, TinyEncoder
from tests.support.services import client_of, files, picture, teach

TINY = {f"tiny-{seed}": TinyEncoder(seed=seed) for seed in (1, 2)}


def encoder_called(name: str):
    parts = [TINY[part] if part in TINY else ColourEncoder() for part in name.split("+")]
    return parts[0] if len(parts) == 1 else CombinedEncoder(parts)


def service_of(path, encoder) -> Service:
    empty = empty_state(encoder_space(encoder), has_text=False, method="HierarchicalHyCal")
    return Service(Project(path, empty, journal=True), encoder)


@pytest.fixture
def both(tmp_path):
    return service_of(tmp_path / "both.hycal", encoder_called("colours+tiny-1"))


def test_the_encoders_of_a_new_model_are_joined_on_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr("hycal.serve.service.load_encoder", encoder_called)
    client = client_of(service_of(tmp_path / "new.hycal", ColourEncoder()))
    started = client.post("/api/encoder", json={"encoder": "tiny-1+colours"}).json()
    assert started["info"]["encoder"] == "colours+tiny-1" and started["info"]["views"] == {"colours": 48, "tiny-1": 12}
    assert client.post("/api/encoder", json={"encoder": "tiny-2"}).json()["info"]["views"] == {}
    client.post("/api/encoder", json={"encoder": "tiny-1+colours"})
    teach(client)
    assert client.get("/api/info").json()["encoder"] == "colours+tiny-1"
    assert client.post("/api/encoder", json={"encoder": "tiny-2"}).status_code == 409


def test_an_answer_shows_the_evidence_of_each_view(both):
    client = client_of(both)
    teach(client)
    answer = client.post("/api/classify?why=true", files=files(picture("red", 9))).json()["answers"][0]
    best = answer["candidates"][0]
    assert best["label"] == "colour/red"
    assert [part["name"] for part in best["evidence"]["parts"]] == ["colours", "tiny-1", "domain"]
    assert all(-1 <= near["similarity"] <= 1.0001 for near in best["evidence"]["nearest"])
    methods = {one["name"]: one["problem"] for one in client.get("/api/choices").json()["methods"]}
    assert "one encoder" in methods["RanPAC"] and not methods["HierarchicalHyCal"]
    assert client.post("/api/method", json={"method": "RanPAC"}).status_code == 400


def test_a_sealed_model_is_served(both, tmp_path):
    teach(client_of(both))
    path = tmp_path / "sealed.hycal"
    Project.create(path, seal(both.state))
    client = client_of(Service(Project(path), encoder_called("colours+tiny-1")))
    for read in ("info", "classes", "accuracy", "map", "history"):
        assert client.get(f"/api/{read}").status_code == 200, read
    assert client.get("/api/info").json()["views"] == {"colours": 48, "tiny-1": 12}
    answer = client.post("/api/classify?why=true", files=files(picture("red", 9))).json()["answers"][0]
    best = answer["candidates"][0]
    assert best["label"] == "colour/red" and not best["evidence"]["nearest"]
    assert [part["name"] for part in best["evidence"]["parts"]] == ["colours", "tiny-1", "domain"]


def test_rows_of_one_view_are_answered_from_it(both):
    client = client_of(both)
    teach(client)
    tiny = np.stack([e.row[48:] for e in both.state.examples])
    labels = [both.state.label_of[e.key] for e in both.state.examples]
    path = "/api/classify-embeddings"
    found = client.post(f"{path}?view=tiny-1&top=1", json={"rows": tiny.tolist()}).json()["answers"]
    zeros = np.concatenate([np.zeros((len(tiny), 48)), tiny], axis=1)
    wide = client.post(f"{path}?top=1", json={"rows": zeros.tolist()}).json()["answers"]
    assert found == wide
    assert np.mean([one["candidates"][0]["label"] == own for one, own in zip(found, labels, strict=True)]) > 0.8
    for view, said in (("tiny-2", "this model has colours of 48 numbers, tiny-1 of 12"), ("colours", "Rows of 12")):
        refused = client.post(f"{path}?view={view}", json={"rows": tiny.tolist()})
        assert refused.status_code == 400 and said in refused.json()["detail"]
    nothing = client.post(path, json={"rows": [[0.0] * 60]})
    assert nothing.status_code == 400 and "all zeros" in nothing.json()["detail"]


def test_undo_of_a_view_changes_what_embeds_images(tmp_path, monkeypatch):
    service = service_of(tmp_path / "m.hycal", ColourEncoder())
    client = client_of(service)
    teach(client)
    alone = service.state.hash
    rows = {e.key: TINY["tiny-1"].encode(np.ones((1, 3, 8, 8), np.float32))[0] for e in service.state.examples}
    service.project.add_view(encoder_space(TINY["tiny-1"]), rows)

    def loaded(state, **options):
        return encoder_called(state.space.name), ""

    monkeypatch.setattr("hycal.serve.service.encoder_if_any", loaded)
    wide = [e.row.tolist() for e in service.state.examples]  # the view was added elsewhere
    assert client.post("/api/classify-embeddings", json={"rows": wide}).status_code == 200 and service.width == 60
    answer = client.post("/api/classify", files=files(picture("red", 8))).json()["answers"][0]
    assert answer["candidates"][0]["label"] == "colour/red"
    undone = client.post("/api/undo").json()
    assert undone["after"] == alone and undone["info"]["views"] == {} and service.width == 48
    redone = client.post("/api/redo").json()
    assert redone["info"]["encoder"] == "colours+tiny-1" and service.width == 60
    answer = client.post("/api/classify", files=files(picture("red", 9))).json()["answers"][0]
    assert answer["candidates"][0]["label"] == "colour/red"
    monkeypatch.setattr("hycal.serve.service.encoder_if_any", lambda state, **options: (None, "It is not installed."))
    assert not client.post("/api/undo").json()["info"]["can_embed"]


@pytest.fixture
def followed(tmp_path):
    """A server with an encoder as by --weights: nothing else says where its files are. A view was added elsewhere."""
    service = service_of(tmp_path / "m.hycal", ColourEncoder())
    teach(client_of(service))
    row = TINY["tiny-1"].encode(np.ones((1, 3, 8, 8), np.float32))[0]
    service.project.add_view(encoder_space(TINY["tiny-1"]), {e.key: row for e in service.state.examples})
    return service, service.encoder


def test_a_server_that_follows_a_view_keeps_the_encoder_that_it_was_given(followed):
    service, given = followed
    client = client_of(service)
    answer = client.post("/api/classify", files=files(picture("red", 8))).json()["answers"][0]
    assert answer["candidates"][0]["label"] == "colour/red" and service.encoder.present == (given,)
    client.post("/api/undo")
    assert service.encoder is given


def test_an_encoder_that_the_model_lost_is_used_again_when_undo_brings_it_back(followed):
    service, given = followed
    client = client_of(service)
    service.project.drop_view("colours")
    service.follow_space()
    assert service.encoder is None and not client.get("/api/info").json()["can_embed"]
    assert client.post("/api/undo").json()["info"]["missing_views"].keys() == {"tiny-1"}
    assert service.encoder.present == (given,)
    answer = client.post("/api/classify", files=files(picture("red", 8))).json()["answers"][0]
    assert answer["candidates"][0]["label"] == "colour/red"


def test_a_view_that_cannot_be_made_here_is_told_and_images_are_answered_without_it(tmp_path, both):
    teach(client_of(both))
    both.project.close()
    absent = MissingEncoder("tiny-1", 12, "tiny-1-12", "Get it: `hycal encoders get tiny-1`.")
    partial = Service(Project(both.project.path, journal=True), CombinedEncoder([ColourEncoder(), absent]))
    client = client_of(partial)
    assert client.get("/api/info").json()["missing_views"] == {"tiny-1": absent.reason}
    image = client.post("/api/classify", files=files(picture("blue", 9))).json()["answers"][0]
    assert image["candidates"][0]["label"] == "colour/blue"
    learned = client.post("/api/learn", json={"labels": {image["image"]: "colour/blue"}})
    assert learned.status_code == 200 and sum(not e.row[48:].any() for e in partial.state.examples) == 1


def test_rows_of_another_space_are_refused(both):
    with pytest.raises(HyCalError, match="this model has colours of 48 numbers"):
        both.state.space.widened(np.ones((1, 12), np.float32), "other")
    assert Space("one", None, 3).widened(np.ones((1, 3), np.float32), "").shape == (1, 3)
