"""Images that were sent and are classified or learned later, when the server may not have them any more."""

from __future__ import annotations

import gc
import socket
import time
import weakref
from functools import partial

import numpy as np
import pytest

from hycal.project import Arrival, Example, Project, Space, empty_state
from hycal.serve import server
from hycal.serve.app import compacting, make_app
from hycal.serve.caches import CachedResult
from hycal.serve.security import Access
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


def forget_on_the_page(client, path):
    assert client.post("/api/forget", json={"name": "colour/red", "for_good": True}).status_code == 200


def forget_by_another_program(client, path):
    Project(path).forget_for_good("colour/red")
    assert client.get("/api/info").json()["classes"] == 1


def forget_while_nobody_asks(client, path):
    Project(path).forget_for_good("colour/red")
    time.sleep(0.2)  # twenty looks at the file


@pytest.mark.parametrize("forget", [forget_on_the_page, forget_by_another_program, forget_while_nobody_asks])
def test_forgetting_for_good_leaves_nothing_in_memory(tmp_path, monkeypatch, forget):
    monkeypatch.setattr("hycal.serve.app.compacting", partial(compacting, seconds=0.01))
    service = new_service(tmp_path / "m.hycal")
    with client_of(service) as client:
        teach(client)
        client.post("/api/classify?unknown=0.05&why=true", files=files(picture("red", 9)))
        for route in ("accuracy", "map", "classes", "examples?label=colour/red"):
            assert client.get(f"/api/{route}").status_code == 200
        state = service.state
        class_, calibration = state.classes["colour/red"], service._calibration._last
        derived = state.classifier.snapshot()
        assert calibration is not None and "colour/red" in calibration[0], "a cache holds the classes"
        image = class_.examples[0].identity.hex()
        held = [weakref.ref(one) for one in (*class_.examples, class_, class_.record, class_.rows, derived)]
        del state, class_, derived, calibration
        forget(client, tmp_path / "m.hycal")
        gc.collect()
        assert not [one for one in held if one() is not None]
        assert client.get(f"/api/thumbnails/{image}").status_code == 404
        assert client.post("/api/answers", json={"images": [image]}).json()["answers"][0]["problem"]


def test_a_server_searches_garbage_though_commands_do_so_rarely(service, monkeypatch):
    monkeypatch.setattr(server, "allow_many_files", lambda: None)
    monkeypatch.setattr(server, "keep_one_blas_thread", lambda: None)
    seen = []
    monkeypatch.setattr(server.uvicorn.Server, "run", lambda *_, **options: seen.append(gc.get_threshold()))
    before = gc.get_threshold()
    try:
        gc.set_threshold(500_000)
        with socket.socket() as door, pytest.raises(SystemExit):  # nothing was started
            server.serve_on(door, make_app(service, Access()))
    finally:
        gc.set_threshold(*before)
    assert seen[0][0] < 10_000


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


def test_no_answer_has_a_character_that_is_not_printed(taught, service):
    hidden = "cat\u202e\x9b31m\x7f"
    row = service.state.examples[0].row[::-1].copy()
    service.project.learn([Arrival(f"colour/{hidden}", Example(row, name=f"{hidden}.png"))])
    body = {"rows": [row.tolist()]}
    for answer in (
        *(taught.get(f"/api/{route}") for route in ("info", "classes", "history", "map", "accuracy")),
        taught.get("/api/examples", params={"label": f"colour/{hidden}"}),
        taught.get("/api/examples", params={"label": f"no such class {hidden}"}),
        taught.post("/api/classify-embeddings", json=body),
        taught.post("/api/rename", json={"old": f"colour/{hidden}", "new": hidden}),
        taught.post("/api/rename", json={hidden: "red"}),
        taught.post("/api/images", files=files(picture("red", 7), name=f"{hidden}.png")),
    ):
        assert answer.content.isascii() and answer.text.isprintable(), answer.request.url
    best = taught.post("/api/classify-embeddings", json=body).json()["answers"][0]["candidates"][0]
    assert best["label"] == f"colour/{hidden}", "programs read the very name"
