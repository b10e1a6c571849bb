"""Images that were sent and are classified or learned later, when the server may not have them any more."""

from __future__ import annotations

from hycal.project import Arrival, Example
from tests.support.services import client_of, files, new_service, picture


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


def test_a_file_name_that_is_no_unicode_can_be_shown(taught, service):
    row = service.state.examples[0].row[::-1].copy()
    example = Example(row, name="caf\udce9.png")  # as the file system gives a name in another encoding
    service.project.learn([Arrival("colour/odd", example)])
    (shown,) = taught.get("/api/examples?label=colour/odd").json()["examples"]
    assert shown["name"] == "caf?.png"
    (answer,) = taught.post("/api/answers", json={"images": [shown["image"]]}).json()["answers"]
    assert (answer["name"], answer["learned_as"]) == ("caf?.png", "colour/odd")
