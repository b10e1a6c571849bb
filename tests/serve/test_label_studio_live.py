"""A Label Studio that runs, with `hycal serve --label-studio` as its ML back end.

HYCAL_LABEL_STUDIO is its address and HYCAL_LABEL_STUDIO_KEY an access token of a user. It must accept back ends on this
machine: `ML_BLOCK_LOCAL_IP=false SSRF_PROTECTION_ENABLED=false LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN=true label-studio`.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable

import httpx
import pytest
import uvicorn

from hycal.data.annotations import MODEL, ImageLabel, read_labels, write_labels
from hycal.serve.app import make_app
from hycal.serve.label_studio import LabelStudio
from hycal.serve.security import Access
from hycal.serve.server import backend_address
from tests.support.services import client_of, new_service, picture, teach

ADDRESS = os.environ.get("HYCAL_LABEL_STUDIO", "")
CHOICES = '<Choice value="colour/red"/><Choice value="colour/blue"/><Choice value="green"/>'
CONFIG = f'<View><Image name="image" value="$image"/><Choices name="choice" toName="image">{CHOICES}</Choices></View>'
FILES = ["photos/red é,0.png", "photos/=blue&?.png", "photos/green+x.png"]

pytestmark = pytest.mark.skipif(not ADDRESS, reason="no HYCAL_LABEL_STUDIO")


@pytest.fixture
def studio():
    key = {"Authorization": f"Token {os.environ['HYCAL_LABEL_STUDIO_KEY']}"}
    with httpx.Client(base_url=ADDRESS, headers=key, timeout=120) as client:
        yield client


@pytest.fixture
def served(tmp_path):
    """A server on a free port; yields its service and the address for Label Studio."""
    for number, (name, colour) in enumerate(zip(FILES, ("red", "blue", "green"), strict=True), start=10):
        (tmp_path / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "images" / name).write_bytes(picture(colour, number))
    service, access = new_service(tmp_path / "m.hycal"), Access(token="0123456789abcdef-token")
    teach(client_of(service))
    app = make_app(service, access, label_studio=LabelStudio(service, tmp_path / "images"))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_for(lambda: server.started)
    yield service, backend_address(access, server.servers[0].sockets[0].getsockname()[1])
    server.should_exit = True
    thread.join()


def wait_for(done: Callable[[], bool], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until
        time.sleep(0.1)


def result(choice: str) -> dict:
    return {"result": [{"from_name": "choice", "to_name": "image", "type": "choices", "value": {"choices": [choice]}}]}


def test_label_studio_gets_predictions_and_teaches(studio, served, tmp_path):
    service, address = served
    project = studio.post("/api/projects/", json={"title": "Colours", "label_config": CONFIG}).json()["id"]
    written = [ImageLabel(file, "blue", "colour", by=MODEL, confidence=0.5) for file in FILES]
    written.append(ImageLabel("photos/known.png", "red", "colour"))
    tasks = json.loads(write_labels(written, "label-studio", lambda file: None))
    imported = studio.post(f"/api/projects/{project}/import", params={"return_task_ids": True}, json=tasks).json()
    assert (imported["annotation_count"], imported["prediction_count"]) == (1, 3)
    backend = studio.post("/api/ml/", json={"url": address, "project": project})
    assert backend.status_code == 201 and backend.json()["model_version"] == service.state.hash[:12], backend.text

    asked = {"selectedItems": {"all": True, "excluded": []}, "project": str(project)}
    action = {"id": "retrieve_tasks_predictions", "project": project}
    assert studio.post("/api/dm/actions", params=action, json=asked).status_code == 200
    found = studio.get("/api/predictions/", params={"task": imported["task_ids"][0], "project": project}).json()
    (own,) = [entry for entry in found if entry["model_version"] == service.state.hash[:12]]
    assert own["result"][0]["value"]["choices"] == ["colour/red"] and 0.5 < own["score"] <= 1.0

    start, task = service.state.hash, imported["task_ids"][2]
    made = studio.post(f"/api/tasks/{task}/annotations/", json=result("green")).json()["id"]
    wait_for(lambda: "colour/green" in service.state.classes)
    studio.patch(f"/api/annotations/{made}/", json=result("colour/blue"))
    wait_for(lambda: len(service.state.classes["colour/blue"].examples) == 4)
    studio.delete(f"/api/annotations/{made}/")
    wait_for(lambda: service.state.hash == start)

    studio.post(f"/api/tasks/{task}/annotations/", json=result("green"))
    exported = tmp_path / "export.json"
    exported.write_bytes(studio.get(f"/api/projects/{project}/export", params={"exportType": "JSON"}).content)
    labels = {item.file: item.name for item in read_labels(exported) if not item.predicted}
    assert labels == {FILES[2]: "green", "photos/known.png": "colour/red"}
