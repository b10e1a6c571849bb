"""Images that were sent and are classified or learned later, when the server may not have them any more."""

from __future__ import annotations

import gc
import weakref

import numpy as np

from hycal.project import Arrival, Example, Project, Space, empty_state
from hycal.serve.caches import CachedResult
from tests.support.encoders import ColourEncoder
from tests.support.services import client_of, files, new_service, picture, teach


def test_an_image_that_the_server_does_not_have_spoils_no_other_answer(taught):
    one = taught.post("/api/classify?unknown=0.05", files=files(picture("red", 9))).json()["answers"][0]
    images = ["0" * 64, one["image"], "1" * 64]
    lost, found, last = taught.post("/api/answers?unknown=0.05", json={"images": images}).json()["answers"]
    assert found == one
    for answer in (lost, last):
        assert "Send it again" in answer["problem"]
        assert (answer["image"], answer["candidates"]) == (None, [])


def test_more_than_the_server_keeps_is_learned_in_several_steps(tmp_path):
    with client_of(new_service(tmp_path / "m.hycal", tray=3)) as client:

        def send(*numbers: int) -> dict[str, str]:
            pictures = [picture("green", number) for number in numbers]
            sent = client.post("/api/images", files=files(*pictures)).json()["images"]
            return {one["image"]: "colour/green" for one in sent}

        most = client.get("/api/info").json()["limits"]["tray"]
        assert most == 3
        refused = client.post("/api/learn", json={"labels": send(*range(most + 1))})
        assert refused.status_code == 400  # to send them again would not help
        assert "in several steps" in refused.json()["detail"]
        first, others = send(*range(most)), send(*range(most, 2 * most))
        refused = client.post("/api/learn", json={"labels": first})
        assert refused.status_code == 404  # here it does
        assert "send them again" in refused.json()["detail"]
        assert client.post("/api/learn", json={"labels": others}).status_code == 200
        assert client.post("/api/learn", json={"labels": send(*range(most))}).status_code == 200
        assert client.post("/api/learn", json={"labels": first | others}).status_code == 200  # learned
        assert client.get("/api/info").json()["images"] == 2 * most


def test_forgetting_for_good_leaves_nothing_in_memory(taught, service, monkeypatch, tmp_path):
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path / "cache"))
    taught.post("/api/classify?unknown=0.05&why=true", files=files(picture("red", 9)))
    for route in ("accuracy", "map", "classes", "examples?label=colour/red"):
        assert taught.get(f"/api/{route}").status_code == 200
    state = service.state
    class_, (derived, calibration) = (
        state.classes["colour/red"],
        (state.classifier.snapshot(), service._calibration._last),
    )
    assert calibration is not None and "colour/red" in calibration[0], "a cache holds the classes"
    image = class_.examples[0].identity.hex()
    held = [weakref.ref(one) for one in (*class_.examples, class_, class_.record, class_.rows, derived)]
    del state, class_, derived, calibration
    assert taught.post("/api/forget", json={"name": "colour/red", "for_good": True}).status_code == 200
    gc.collect()
    assert not [one for one in held if one() is not None]
    assert taught.get(f"/api/thumbnails/{image}").status_code == 404
    assert taught.post("/api/answers", json={"images": [image]}).json()["answers"][0]["problem"]


def test_a_thumbnail_is_not_kept_by_browsers(taught, service):
    image = service.state.examples[0].identity.hex()
    assert taught.get(f"/api/thumbnails/{image}").headers["Cache-Control"] == "no-store"


def test_a_result_of_a_state_before_a_forgetting_is_not_kept(tmp_path):
    service = new_service(tmp_path / "m.hycal")
    with client_of(service) as client:
        teach(client)
    before, counted = service.state, CachedResult(lambda state: state.version)
    counted.clear(before.version + 1)
    assert counted(before) == before.version and counted._last is None and counted._checked is None


def test_a_model_of_another_encoder_in_its_place_is_refused(tmp_path):
    path = tmp_path / "m.hycal"
    service = new_service(path)
    with client_of(service) as client:
        teach(client)
        service.project.close()
        path.unlink()
        rows = np.eye(ColourEncoder.dimension, dtype=np.float32)
        other = Project(path, empty_state(Space("other", "other-space", len(rows)), has_text=False))
        other.learn([Arrival("a/b", Example(rows[0])), Arrival("a/c", Example(rows[1]))])
        before = path.read_bytes()
        sent = client.post("/api/classify", files=files(picture("red", 9)))
        assert sent.status_code == 409 and "holds another model now" in sent.json()["detail"]
        refused = client.post("/api/rename", json={"old": "a/b", "new": "x"})
        assert refused.status_code == 409 and path.read_bytes() == before


def test_a_file_name_that_is_no_unicode_can_be_shown(taught, service):
    row = service.state.examples[0].row[::-1].copy()
    example = Example(row, name="caf\udce9.png")  # as the file system gives a name in another encoding
    service.project.learn([Arrival("colour/odd", example)])
    (shown,) = taught.get("/api/examples?label=colour/odd").json()["examples"]
    assert shown["name"] == "caf?.png"
    (answer,) = taught.post("/api/answers", json={"images": [shown["image"]]}).json()["answers"]
    assert (answer["name"], answer["learned_as"]) == ("caf?.png", "colour/odd")
