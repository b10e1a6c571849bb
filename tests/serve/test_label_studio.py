"""The back end of Label Studio: requests that Label Studio 1.23.2 sent, recorded, and others of the same shapes.

`test_label_studio_live` does the same with a Label Studio that runs.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from hycal.errors import HyCalError
from hycal.project import Project
from hycal.serve.app import make_app
from hycal.serve.label_studio import LabelStudio
from hycal.serve.labeling_interface import read_interface
from hycal.serve.security import Access
from hycal.serve.server import backend_address
from hycal.serve.service import Service
from tests.support.data import ROOT
from tests.support.encoders import ColourEncoder
from tests.support.services import HOME, new_service, picture, teach

BASE = "/api/label-studio"
TOKEN = "0123456789abcdef-token"
CONFIG = (
    '<View><Image name="img" value="$photo"/><Choices name="kind" toName="img" choice="single">'
    '<Choice value="red"/><Choice value="colour/blue"/><Choice value="Green one" alias="green"/></Choices></View>'
)
COLOURS = {"1.png": ("red", 10), "deep/2.png": ("blue", 11), "3.png": ("green", 12), "4.png": ("red", 13)}


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "images"
    for name, (colour, number) in COLOURS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(picture(colour, number))
    (tmp_path / "secret.png").write_bytes(picture("red", 99))
    (root / "link.png").symlink_to(tmp_path / "secret.png")
    (root / "words.png").write_text("no image")
    return root


@pytest.fixture
def service(tmp_path):
    return new_service(tmp_path / "m.hycal")


@pytest.fixture
def client(service, folder):
    with client_with(service, folder) as client:
        yield client


@pytest.fixture
def taught(client):
    teach(client)
    return client


def client_with(service: Service, folder: Path, access: Access | None = None) -> TestClient:
    return TestClient(make_app(service, access, label_studio=LabelStudio(service, folder)), base_url=HOME)


def task(file: str, number: int = 1) -> dict:
    """A task as Label Studio serialises it, with the fields that the back end does not need."""
    data = {"photo": file if "/data/" in file or ":" in file else f"/data/local-files/?d={file}"}
    more = {"meta": {}, "is_labeled": False, "overlap": 1, "inner_id": number, "project": 5, "file_upload": None}
    return {"id": number, "predictions": [], "annotations": [], "data": data, **more}


def predict(client: TestClient, *files: str, config: str = CONFIG) -> dict:
    params = {"login": None, "password": None, "context": None}
    body = {
        "tasks": [task(file) for file in files],
        "project": "5.1790000000",
        "label_config": config,
        "params": params,
    }
    answer = client.post(f"{BASE}/predict", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def event(
    client: TestClient, action: str, number: int, file: str, *choices: str, status: int = 200, **more
) -> list[str]:
    value = {"choices": list(choices)}
    result = {"id": "abc", "type": "choices", "value": value, "origin": "manual", "to_name": "img", "from_name": "kind"}
    about = {
        "was_cancelled": False,
        "ground_truth": False,
        "completed_by": 1,
        "lead_time": 1.5,
        "task": 1,
        "project": 5,
    }
    annotation = {"id": number, "result": [result] if choices else [], **about, **more}
    project = {"id": 5, "title": "Colours", "label_config": CONFIG, "created_by": {"id": 1}}
    body = {"action": action, "annotation": annotation, "task": task(file), "project": project}
    answer = client.post(f"{BASE}/webhook", json=body)
    assert answer.status_code == status, answer.text
    return answer.json().get("done", [answer.json().get("detail")])


def delete(client: TestClient, *numbers: int) -> list[str]:
    listed = [{"id": number} for number in numbers]
    project = {"id": 5, "title": "Colours", "label_config": CONFIG}
    body = {"action": "ANNOTATIONS_DELETED", "annotations": listed, "project": project}
    answer = client.post(f"{BASE}/webhook", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["done"]


def counts(service: Service) -> dict[str, int]:
    return {str(label): len(class_.examples) for label, class_ in service.state.classes.items()}


def test_a_project_is_connected(client, service):
    assert client.get(f"{BASE}/health").json() == {"status": "UP", "model_class": "hycal"}
    about = {"hostname": "http://localhost:8080", "access_token": "secret", "extra_params": None}
    answer = client.post(f"{BASE}/setup", json={"project": "5.1790000000", "schema": CONFIG, **about})
    assert answer.json() == {"model_version": service.state.hash[:12]}


def test_requests_that_label_studio_sent(taught, service, folder):
    (folder / "photos").mkdir()
    for number, colour in enumerate(("red", "blue"), start=10):
        (folder / "photos" / f"{colour} é,0.png").write_bytes(picture(colour, number))
    start, seen = service.state.hash, []
    for request in json.loads((ROOT / "tests/golden/label-studio-1.23.json").read_text())["requests"]:
        answer = taught.request(request["method"], f"{BASE}/{request['path']}", json=request["body"])
        assert answer.status_code == 200, answer.text
        seen.append(answer.json() if request["path"] == "predict" else answer.json().get("done"))
    predicted = [one["result"][0]["value"]["choices"] for (one,) in seen[2]["results"]]
    assert predicted == [["colour/red"], ["colour/blue"]]
    learned = ["1 image is colour/green", "1 image is colour/red, not colour/green", "forgotten: 1 image of colour/red"]
    assert seen[3:] == [
        [learned[0]],
        [learned[1]],
        [learned[2]],
        ["annotation 5 taught nothing that is known here"],
        [],
    ]
    assert service.state.hash == start


def test_tasks_get_predictions_under_the_names_of_the_choices(taught, service):
    found = predict(taught, "1.png", "deep/2.png", "4.png")
    assert found["model_version"] == service.state.hash[:12] and found["problems"] == []
    choices = [[entry["value"]["choices"] for entry in one["result"]] for (one,) in found["results"]]
    assert choices == [[["red"]], [["colour/blue"]], [["red"]]]
    (one,) = found["results"][0]
    assert 0.5 < one["score"] <= 1.0 and one["model_version"] == found["model_version"]
    assert {key: one["result"][0][key] for key in ("from_name", "to_name", "type")} == {
        "from_name": "kind",
        "to_name": "img",
        "type": "choices",
    }


def test_what_was_embedded_once_is_not_embedded_again(taught, service, monkeypatch):
    before = predict(taught, "1.png", "1.png", "3.png")
    monkeypatch.setattr(service, "receive", lambda uploads: pytest.fail("embedded again"))
    assert predict(taught, "1.png", "1.png", "3.png") == before


def test_an_empty_model_and_an_image_that_fits_no_class_have_empty_predictions(client):
    assert predict(client, "1.png")["results"][0][0]["result"] == []
    teach(client, count=8)
    (strange,) = predict(client, "3.png")["results"][0]
    assert strange["result"] == [] and strange["score"] == 0.0


def test_other_choices_than_the_classes_are_not_predicted(taught):
    config = CONFIG.replace('value="red"', 'value="crimson"').replace("colour/blue", "navy")
    assert predict(taught, "1.png", config=config)["results"][0][0]["result"] == []


def test_images_that_are_not_in_the_folder_are_not_read(taught):
    files = [
        "../secret.png",
        "/data/local-files/?d=/etc/passwd",
        "link.png",
        "words.png",
        "missing.png",
        "deep",
        "",
        "a%00b.png",
        "%ED%A0%80.png",
        "/data/upload/../../../secret.png",
        "http://169.254.169.254/latest/meta-data",
        "http://[1.png",
        "s3://bucket/1.png",
        "file:///etc/passwd",
    ]
    found = predict(taught, *files, "1.png")
    assert found["results"][:-1] == [[]] * len(files) and len(found["problems"]) == len(files)
    assert found["results"][-1][0]["result"] and "root:" not in json.dumps(found)


def test_annotations_are_learned_changed_and_taken_back(taught, service):
    start = service.state.hash
    assert event(taught, "ANNOTATION_CREATED", 7, "1.png", "red") == ["1 image is colour/red"]
    assert counts(service) == {"colour/blue": 3, "colour/red": 4}
    assert service.state.classes["colour/red"].examples and "1.png" in {e.name for e in service.state.examples}
    event(taught, "ANNOTATION_UPDATED", 7, "1.png", "green")
    assert counts(service) == {"colour/blue": 3, "colour/green": 1, "colour/red": 3}
    delete(taught, 7)
    assert service.state.hash == start
    assert "taught nothing" in delete(taught, 7)[0]


def test_a_deletion_is_understood_after_the_server_was_started_again(taught, service, folder, tmp_path):
    start = service.state.hash
    event(taught, "ANNOTATION_CREATED", 7, "1.png", "green")
    again = Service(Project(tmp_path / "m.hycal", journal=True), ColourEncoder())
    with client_with(again, folder) as client:
        assert delete(client, 7) == ["forgotten: 1 image of colour/green"]
    assert again.state.hash == start


def test_of_several_annotations_the_newest_counts_and_then_the_label_of_before(taught, service):
    event(taught, "ANNOTATION_CREATED", 1, "4.png", "red")
    learned = service.state.hash
    event(taught, "ANNOTATION_CREATED", 2, "4.png", "green")
    event(taught, "ANNOTATION_CREATED", 3, "4.png", "colour/blue")
    delete(taught, 2)
    assert counts(service) == {"colour/blue": 4, "colour/red": 3}
    delete(taught, 3)
    assert service.state.hash == learned
    event(taught, "ANNOTATION_UPDATED", 1, "4.png", was_cancelled=True)
    assert counts(service) == {"colour/blue": 3, "colour/red": 3}


def test_an_image_that_was_learned_elsewhere_gets_its_label_back(taught, service, folder):
    (folder / "known.png").write_bytes(picture("red", 0))  # as `teach` learned it
    start = service.state.hash
    event(taught, "ANNOTATION_CREATED", 9, "known.png", "green")
    assert counts(service)["colour/red"] == 2
    delete(taught, 9)
    assert service.state.hash == start


def test_a_label_that_a_person_changed_here_stays(taught, service):
    event(taught, "ANNOTATION_CREATED", 9, "1.png", "green")
    image = next(example for example in service.state.examples if example.name == "1.png").key.hex()
    taught.post("/api/correct", json={"image": image, "label": "colour/blue"})
    assert "stays" in delete(taught, 9)[0] and counts(service)["colour/blue"] == 4


def test_a_new_class_joins_the_only_domain_or_that_of_the_control(client, service):
    event(client, "ANNOTATION_CREATED", 1, "1.png", "red")
    assert service.state.labels == ("kind/red",)
    event(client, "ANNOTATION_CREATED", 2, "3.png", "green")
    assert service.state.labels == ("kind/green", "kind/red")


def test_a_name_in_another_form_of_unicode_is_taken_back_too(taught, service):
    start = service.state.hash
    event(taught, "ANNOTATION_CREATED", 1, "1.png", "colour/cafe\u0301")
    assert "colour/caf\xe9" in service.state.classes
    delete(taught, 1)
    assert service.state.hash == start


def test_several_annotations_at_once(taught):
    event(taught, "ANNOTATION_CREATED", 1, "1.png", "red")
    result = [{"type": "choices", "value": {"choices": ["green"]}, "from_name": "kind", "to_name": "img"}]
    body = {
        "action": "ANNOTATIONS_CREATED",
        "annotation": [{"id": 5, "result": result}, {"id": 6, "result": result}],
        "task": [task("3.png"), task("4.png")],
        "project": {"label_config": CONFIG},
    }
    assert taught.post(f"{BASE}/webhook", json=body).json()["done"] == ["1 image is colour/green"] * 2
    body["annotation"] = [{"id": 7, "result": result}, {"id": 8, "result": result}]
    body["task"] = [task("missing.png"), task("deep/2.png")]
    found = taught.post(f"{BASE}/webhook", json=body).json()
    assert found["done"] == ["1 image is colour/green"] and "missing.png" in found["problems"][0]


def test_other_events_do_nothing(taught, service):
    before = service.state.hash
    for action in ("START_TRAINING", "TASKS_CREATED", "PROJECT_UPDATED", "TASKS_DELETED"):
        body = {"action": action, "project": {"id": 5}, "tasks": [{"id": 1}]}
        assert taught.post(f"{BASE}/webhook", json=body).json() == {"done": [], "problems": []}
    assert service.state.hash == before


def test_what_cannot_be_learned_is_refused_with_the_reason(taught, service):
    before = service.state.hash
    assert "2 choices" in event(taught, "ANNOTATION_CREATED", 1, "1.png", "red", "green", status=400)[0]
    for value in (None, 3, {"choices": 3}):
        result = [{"type": "choices", "value": value}]
        assert "expected choices" in event(taught, "ANNOTATION_CREATED", 1, "1.png", status=400, result=result)[0]
    assert "is not a class" in event(taught, "ANNOTATION_CREATED", 1, "1.png", "colour/", status=400)[0]
    assert "taught nothing" in delete(taught, 1)[0]
    assert "cannot be used" in event(taught, "ANNOTATION_CREATED", 1, "missing.png", "red", status=400)[0]
    assert "send payloads" in taught.post(f"{BASE}/webhook", json={"action": "ANNOTATION_CREATED"}).json()["detail"]
    assert service.state.hash == before


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("<View>", "cannot be read"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><View/>', "DOCTYPE"),
        ('<View><Image name="i" value="$i"/></View>', "0 Choices of an Image"),
        ('<View><Text name="t" value="$t"/><Choices name="c" toName="t"/></View>', "0 Choices of an Image"),
        (CONFIG.replace("</View>", '<Choices name="other" toName="img"/></View>'), "2 Choices of an Image"),
    ],
)
def test_other_labeling_interfaces_are_refused(config, says):
    with pytest.raises(HyCalError, match=says):
        read_interface(config)


def test_malformed_requests_are_refused(client):
    bodies = [b"", b"[]", b'{"tasks": [3], "label_config": ""}', b"{" * 10_000, b'"\xff"', b'{"schema": "\\ud83d"}']
    for route in ("setup", "predict", "webhook"):
        for body in bodies:
            assert client.post(f"{BASE}/{route}", content=body).status_code == 400, (route, body)


def test_the_number_of_tasks_and_the_size_of_a_request_are_limited(service, folder):
    small = new_service(service.project.path.with_name("small.hycal"), rows=2)
    with client_with(small, folder) as client:
        body = {"tasks": [task("1.png")] * 3, "label_config": CONFIG}
        assert "the limit is 2" in client.post(f"{BASE}/predict", json=body).json()["detail"]
        assert client.post(f"{BASE}/predict", content=b" " * 30_000).status_code == 413


def test_the_routes_need_the_token_which_label_studio_sends_as_a_password(service, folder):
    access = Access("0.0.0.0", TOKEN)
    assert backend_address(access, 80).startswith(f"http://hycal:{TOKEN}@")
    with client_with(service, folder, access) as client:
        for header in ("", f"Basic {TOKEN}", "Basic !", basic("hycal", "wrong"), basic(TOKEN, "")):
            assert client.get(f"{BASE}/health", headers={"authorization": header}).status_code == 401
        assert client.get(f"{BASE}/health", headers={"authorization": basic("anyone", TOKEN)}).status_code == 200
        answer = client.post(f"{BASE}/webhook", headers={"authorization": basic("a", TOKEN)}, json={"action": "x"})
        assert answer.json()["done"] == []


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_other_sites_cannot_use_the_routes(taught):
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert taught.get(f"{BASE}/health", headers=headers).status_code == 403
        assert taught.post(f"{BASE}/webhook", headers=headers, json={"action": "x"}).status_code == 403


def test_without_the_option_there_are_no_routes(service):
    with TestClient(make_app(service), base_url=HOME) as client:
        assert client.post(f"{BASE}/webhook", json={"action": "x"}).status_code in (404, 405)


def test_forgetting_for_good_leaves_nothing_in_the_list_of_annotations(taught, service):
    event(taught, "ANNOTATION_CREATED", 7, "1.png", "green")
    (path,) = service.project.path.parent.glob("*.label-studio.json")
    image = next(example for example in service.state.examples if example.name == "1.png").key.hex()
    assert image in path.read_text()
    taught.post("/api/forget", json={"image": image, "for_good": True})
    assert image not in path.read_text() and "green" not in path.read_text()


@pytest.mark.parametrize("content", ["{", "[]", '{"hycal-label-studio": 2, "images": {}}', '{"hycal-label-studio": 1}'])
def test_a_file_that_is_no_list_of_annotations_is_not_replaced(service, folder, content):
    path = service.project.path.with_name("m.hycal.label-studio.json")
    path.write_text(content)
    with pytest.raises(HyCalError, match="Move it away"):
        LabelStudio(service, folder)
    assert path.read_text() == content
