"""A server that is read only answers, follows its model, and changes nothing, whatever is sent to it."""

from __future__ import annotations

import pytest

from hycal.errors import ReadOnlyError
from hycal.project import Project, ReadOnlyProject
from hycal.serve.service import Service
from tests.support.encoders import ColourEncoder
from tests.support.services import client_of, files, picture, teach

QUESTIONS = {"/api/classify", "/api/classify-embeddings", "/api/answers", "/api/images", "/api/folders"}


@pytest.fixture
def reader(taught, service):
    """A read-only client of the model that `taught` changes."""
    with client_of(Service(ReadOnlyProject(service.project.path), ColourEncoder())) as reader:
        yield reader


def test_it_answers_and_says_what_it_is(reader):
    assert reader.get("/api/info").json()["read_only"] is True
    (answer,) = reader.post("/api/classify?why=true", files=files(picture("red", 9))).json()["answers"]
    assert answer["candidates"][0]["label"] == "colour/red"
    assert reader.post("/api/answers", json={"images": [answer["image"]]}).json()["answers"][0]["candidates"]


def test_every_route_that_changes_something_is_refused_with_the_reason(reader, service):
    service.project.close()
    before = {path.name: path.read_bytes() for path in service.project.path.parent.iterdir() if path.is_file()}
    operations = reader.get("/openapi.json").json()["paths"]
    tried = [path for path, methods in operations.items() if "post" in methods and path not in QUESTIONS]
    assert len(tried) > 12
    for path in [*tried, "/api/undo/", "/api//undo", "/API/UNDO", "/api/classify/../undo", "/metrics", "/"]:
        answer = reader.post(path, json={"name": "colour/red"})
        assert answer.status_code == 403 and "--read-only" in answer.json()["detail"], path
    for method in ("PUT", "PATCH", "DELETE"):
        assert reader.request(method, "/api/undo").status_code == 403
    assert {path.name: path.read_bytes() for path in service.project.path.parent.iterdir() if path.is_file()} == before


def test_the_project_refuses_too(taught, service):
    project = ReadOnlyProject(service.project.path)
    assert project.state.hash == service.state.hash
    reading = Service(project, ColourEncoder())
    for change in (
        project.undo,
        lambda: project.rename("colour/red", "colour/pink"),
        lambda: project.forget_for_good("colour/red"),
        lambda: project.start_from(project.state),
        lambda: reading.forget("colour/red", for_good=True),
        lambda: reading.change_method("NCM"),
    ):
        with pytest.raises(ReadOnlyError, match=r"read only.*nothing was changed"):
            change()
    assert Project(project.path).state.hash == service.state.hash


def test_it_follows_what_another_program_changes(reader, taught):
    receipt = teach(taught, colours=("green",))
    assert reader.get("/api/info").json()["model"] == receipt["after"]
    (answer,) = reader.post("/api/classify", files=files(picture("green", 9))).json()["answers"]
    assert answer["candidates"][0]["label"] == "colour/green"
