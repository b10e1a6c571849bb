"""Every route, and that what was answered is on the disk."""

from __future__ import annotations

from pathlib import Path

import anyio.to_thread
import numpy as np
import pytest

from hycal.embedding import EmbeddingCache
from hycal.project import Project
from hycal.uncertainty.calibration import Calibration
from tests.support.services import client_of, files, new_service, picture, teach


def best(answer: dict) -> str:
    return answer["candidates"][0]["label"]


def test_an_empty_model_says_what_to_do(client):
    info = client.get("/api/info").json()
    assert (info["classes"], info["images"], info["undo"], info["bytes"]) == (0, 0, None, 0)
    answer = client.post("/api/classify", files=files(picture("red")))
    assert answer.status_code == 400
    assert "Learn a folder first" in answer.json()["detail"]
    assert client.get("/api/map").json()["points"] == []
    assert client.get("/api/classes").json()["classes"] == []
    assert client.get("/api/accuracy").json()["overall"] is None


@pytest.mark.parametrize(
    ("folders", "read"),
    [
        ({"": 1}, ["//"]),
        ({"rose": 2, "red": 1}, ["/-/rose", "/-/red"]),
        ({"photos/rose": 1, "photos": 1}, ["photos/-/rose", "photos/-/"]),
        ({"photos/train/pets/cat": 2, "photos/test/pets/cat": 1}, ["pets/train/cat", "pets/test/cat"]),
        ({"train/rose": 1, "test/rose": 1}, ["/train/rose", "/test/rose"]),
        ({"train/rose": 1}, ["/-/rose"]),
        ({"photos/cat/train": 1, "photos/cat/test": 1}, ["photos/train/cat", "photos/test/cat"]),
    ],
)
def test_folders_are_read_as_by_hycal_learn(client, folders, read):
    places = client.post("/api/folders", json={"folders": folders}).json()["places"]
    assert [place["folder"] for place in places] == list(folders)
    said = [f"{place['domain']}/{place['split'] or '-' * bool(place['folder'])}/{place['name']}" for place in places]
    assert said == read


def test_learn_is_one_step_on_the_disk(client, service):
    receipt = teach(client, count=4)
    assert receipt["images"] == {"colour/red": 4, "colour/blue": 4}
    on_disk = Project(service.project.path).state
    assert on_disk.hash == receipt["after"] == client.get("/api/info").json()["model"]
    assert len(on_disk.history) == 1


def test_classify_tells_colours_apart_with_evidence(taught):
    told = taught.post("/api/classify?why=true", files=files(picture("red", 9), picture("blue", 9))).json()
    assert [best(answer) for answer in told["answers"]] == ["colour/red", "colour/blue"]
    first = told["answers"][0]["candidates"][0]
    parts = first["evidence"]["parts"]
    assert [part["name"] for part in parts] == ["direction", "distance"]
    assert sum(part["share"] for part in parts) == pytest.approx(1 / (1 + np.exp(-first["score"])), abs=1e-5)
    near = first["evidence"]["nearest"][0]
    assert near["label"] == "colour/red"
    thumbnail = taught.get(f"/api/thumbnails/{near['image']}")
    assert thumbnail.headers["content-type"] == "image/jpeg"
    assert thumbnail.content.startswith(b"\xff\xd8")


def test_percentages_are_calibrated_and_a_correction_fits_nothing(taught, service, monkeypatch):
    fitted = []
    fit = Calibration.of
    monkeypatch.setattr(Calibration, "of", lambda *given: fitted.append(1) or fit(*given))
    one = taught.post("/api/classify?top=9", files=files(picture("red", 9))).json()["answers"][0]
    state = service.project.state
    expected = state.classifier.predict_proba([service.image(one["image"]).row])[0]
    told = {candidate["label"]: candidate["probability"] for candidate in one["candidates"]}
    assert [told[label] for label in state.labels] == pytest.approx(expected)
    fitted.clear()
    for label in ("colour/red", "colour/green", "colour/blue"):
        taught.post("/api/correct", json={"image": one["image"], "label": label}).json()
    assert not fitted
    again = taught.post("/api/answers?top=9", json={"images": [one["image"]]}).json()["answers"][0]
    assert fitted, "few classes: one that changed is more than a tenth"
    state = service.project.state
    told = {candidate["label"]: candidate["probability"] for candidate in again["candidates"]}
    assert [told[label] for label in state.labels] == pytest.approx(
        state.classifier.predict_proba([service.image(one["image"]).row])[0]
    )


def test_what_fits_no_class_is_told_unless_the_request_says_no(client, service):
    teach(client, count=1)
    question = "/api/classify"
    one = client.post(question, files=files(picture("green", 1))).json()["answers"][0]
    assert one["unknown"] is None, "no class has two images"
    teach(client, count=8)
    asked = files(picture("green", 1), picture("red", 3), b"no image", picture("grey", 1))
    told = client.post(question, files=asked).json()["answers"]
    assert [answer["unknown"] for answer in told] == [True, False, None, True]
    assert client.post(f"{question}?unknown=0", files=asked[:1]).json()["answers"][0]["unknown"] is None
    image = told[0]["image"]
    rows = [service.image(image).row.tolist()]
    by_row = client.post("/api/classify-embeddings?unknown=0.05", json={"rows": rows}).json()["answers"][0]
    assert by_row["unknown"] is True
    assert client.post("/api/classify-embeddings", json={"rows": rows}).json()["answers"][0]["unknown"] is None
    labels = {}
    for seen in client.post("/api/images", files=files(*(picture("green", n) for n in range(2, 9)))).json()["images"]:
        labels[seen["image"]] = "colour/green"
    client.post("/api/learn", json={"labels": labels})
    assert client.post("/api/answers", json={"images": [image]}).json()["answers"][0]["unknown"] is False
    assert client.post("/api/classify?unknown=1", files=asked[:1]).status_code == 422


def test_answers_again_need_no_upload(taught):
    one = taught.post("/api/classify", files=files(picture("red", 9))).json()["answers"][0]
    again = taught.post("/api/answers", json={"images": [one["image"]]}).json()["answers"][0]
    assert again["candidates"] == one["candidates"]


def test_correct_moves_an_image_and_is_on_the_disk_at_once(taught, service):
    seen = taught.post("/api/classify", files=files(picture("green", 1))).json()["answers"][0]
    done = taught.post("/api/correct", json={"image": seen["image"], "label": "colour/green"}).json()
    assert best(done["answer"]) == "colour/green"
    assert done["answer"]["learned_as"] == "colour/green"
    assert set(done["milliseconds"]) == {"changing", "answering"}
    assert Project(service.project.path).state.hash == done["after"]  # another process would see it
    moved = taught.post("/api/correct", json={"image": seen["image"], "label": "colour/blue"}).json()
    assert "not colour/green" in moved["what"]
    assert [row["label"] for row in taught.get("/api/classes").json()["classes"]] == ["colour/blue", "colour/red"]


def test_corrections_move_from_the_journal_into_the_file_when_the_server_ends(tmp_path):
    service = new_service(tmp_path / "m.hycal")
    with client_of(service) as client:
        teach(client)
        before = service.project.path.read_bytes()
        seen = client.post("/api/classify", files=files(picture("green", 1))).json()["answers"][0]
        done = client.post("/api/correct", json={"image": seen["image"], "label": "colour/green"}).json()
        assert service.project.path.read_bytes() == before
        assert (tmp_path / "m.hycal.journal").exists()
    assert not (tmp_path / "m.hycal.journal").exists()
    assert Project(service.project.path).state.hash == done["after"]
    assert service.project.path.read_bytes() != before


def test_rename_forget_undo_history(taught):
    whole = taught.get("/api/info").json()["model"]
    assert taught.post("/api/rename", json={"old": "colour", "new": "paint"}).json()["what"] == "colour to paint"
    assert taught.post("/api/rename", json={"old": "paint/red", "new": "scarlet"}).status_code == 200
    assert [row["label"] for row in taught.get("/api/classes").json()["classes"]] == ["paint/blue", "paint/scarlet"]
    forgotten = taught.post("/api/forget", json={"name": "paint/blue"}).json()
    assert forgotten["images"] == {"paint/blue": 3}
    image = taught.get("/api/examples", params={"label": "paint/scarlet"}).json()["examples"][0]["image"]
    assert taught.post("/api/forget", json={"image": image}).json()["images"] == {"paint/scarlet": 1}
    for _ in range(4):
        last = taught.post("/api/undo").json()
    assert last["after"] == whole
    actions = [entry["action"] for entry in taught.get("/api/history").json()["entries"]]
    assert actions == ["undo"] * 4 + ["forget", "forget", "rename", "rename", "learn"]
    info = taught.get("/api/info").json()
    assert info["undo"] == "learning of 6 images of 2 classes" and info["undo_empties"]
    assert info["redo"] == "renaming of colour to paint"


def test_every_receipt_tells_what_became_of_the_table(taught):
    """A page that follows the receipts has at any time the table that it would get by asking for it."""
    table = {row["label"]: row for row in taught.get("/api/classes").json()["classes"]}
    seen = taught.post("/api/classify", files=files(picture("green", 1))).json()["answers"][0]["image"]
    learned = taught.get("/api/examples", params={"label": "colour/red"}).json()["examples"][0]["image"]
    asked = [
        ("correct", {"image": seen, "label": "colour/green"}),
        ("correct", {"image": seen, "label": "colour/green"}),
        ("correct", {"image": learned, "label": "colour/blue"}),
        ("correct", {"image": seen, "label": "colour/blue"}),
        ("undo", {}),
        ("rename", {"old": "colour/green", "new": "lime"}),
        ("rename", {"old": "colour", "new": "paint"}),
        ("forget", {"name": "paint/blue"}),
        ("forget", {"image": seen}),
        ("undo", {}),
        ("learn", {"labels": {learned: "paint/red"}}),
        ("forget", {"name": "paint", "for_good": True}),
    ]
    for route, body in asked:
        before = taught.get("/api/info").json()["model"]
        told = taught.post(f"/api/{route}", json=body).json()
        for label in told["gone"]:
            del table[label]
        table |= {row["label"]: row for row in told["rows"]}
        assert list(dict(sorted(table.items())).values()) == taught.get("/api/classes").json()["classes"], route
        assert told["info"] == taught.get("/api/info").json()
        assert (told["before"], told["after"]) == (before, told["info"]["model"])


def test_forgotten_for_good_leaves_nothing_to_undo(taught, service, cache):
    images = [row["images"] for row in taught.get("/api/classes").json()["classes"]]
    both = [*images[0], *images[1]]
    with EmbeddingCache.of(service.encoder, cache) as store:
        store.add([bytes.fromhex(image) for image in both], np.stack([service.image(image).row for image in both]))
    receipt = taught.post("/api/forget", json={"name": "colour/red", "for_good": True}).json()
    assert not receipt["undoable"]
    assert taught.post("/api/undo").status_code == 400
    again = taught.post("/api/answers", json={"images": images[1]}).json()["answers"]
    assert all(answer["problem"] for answer in again), "still in memory"
    with EmbeddingCache.of(service.encoder, cache) as store:
        assert store.known() == {bytes.fromhex(image) for image in images[0]}


def test_accuracy_and_map_belong_to_the_model_they_name(taught):
    model = taught.get("/api/info").json()["model"]
    accuracy, chart = taught.get("/api/accuracy").json(), taught.get("/api/map").json()
    assert accuracy["model"] == chart["model"] == model
    assert accuracy["overall"] == {"right": 6, "total": 6}
    assert [row["left_out"]["total"] for row in accuracy["classes"]] == [3, 3]
    xs = {point["label"]: point["x"] for point in chart["points"]}
    assert sorted(xs.values()) == pytest.approx([-1, 1])


def test_another_process_changes_the_file_and_the_server_sees_it(taught, service):
    other = Project(service.project.path)
    receipt = other.forget("colour/blue")
    assert taught.get("/api/info").json()["model"] == receipt.after


@pytest.mark.parametrize("label", ["green", "/red", "colour/", " colour/red", "a\nb/c", "x" * 300, "colour/\x00"])
def test_labels_that_are_none(taught, label):
    seen = taught.post("/api/classify", files=files(picture("green", 1))).json()["answers"][0]
    before = taught.get("/api/info").json()
    assert taught.post("/api/correct", json={"image": seen["image"], "label": label}).status_code in (400, 422)
    assert taught.get("/api/info").json() == before


@pytest.mark.parametrize("body", [{}, {"name": "a", "image": "0" * 64}, {"name": "a", "path": "/etc"}, []])
def test_forget_wants_one_target(taught, body):
    assert taught.post("/api/forget", json=body).status_code == 422


def test_without_the_encoder_embeddings_still_work(tmp_path, taught, service):
    from hycal.serve.service import Service

    bare = Service(Project(service.project.path), None, why_no_encoder="Get it with `hycal encoders get`.")
    row = service.state.examples[0].row.tolist()
    with client_of(bare) as client:
        answer = client.post("/api/classify", files=files(picture("red")))
        assert answer.status_code == 400
        assert "hycal encoders get" in answer.json()["detail"]
        assert client.post("/api/classify-embeddings", json={"rows": [row]}).status_code == 200


def test_the_openapi_document_describes_every_route(client):
    document = client.get("/openapi.json").json()
    assert "/api/classify" in document["paths"]
    for path, methods in document["paths"].items():
        for method in methods.values():
            assert method["summary"], path
            assert "400" in method["responses"], path


def test_the_document_of_the_server_names_every_route(client):
    text = (Path(__file__).parents[2] / "docs" / "reference" / "serve.md").read_text()
    for path in client.get("/openapi.json").json()["paths"]:
        assert path.partition("{")[0] in text, path


@pytest.mark.parametrize("path", ["/api/info", "/api/health", "/api/accuracy", "/openapi.json", "/", "/api/nothing"])
def test_head_is_get_without_its_body(taught, path):
    head, get = taught.head(path), taught.get(path)
    assert head.status_code == get.status_code
    assert head.content == b""
    assert head.headers == get.headers


def test_health_waits_for_no_thread(client, monkeypatch):
    monkeypatch.setattr(anyio.to_thread, "run_sync", lambda *given, **options: pytest.fail("a thread was asked for"))
    assert client.get("/api/health").json()["status"] == "ok"


def test_head_of_what_only_takes_posts_changes_nothing(taught, service):
    before = service.state.hash
    assert taught.head("/api/undo").status_code == taught.get("/api/undo").status_code == 404
    assert service.state.hash == before
