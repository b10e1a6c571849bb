"""Many at once: readers see a whole model, old or new, and whatever was answered is on the disk."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from hycal.classifiers import HyCal
from hycal.project import Project
from tests.support.encoders import ColourEncoder
from tests.support.services import client_of, files, new_service, picture, teach


def test_readers_see_whole_models_while_others_write(tmp_path):
    service = new_service(tmp_path / "m.hycal")
    with client_of(service) as client:
        known = {teach(client)["after"]}
        images = [
            client.post("/api/images", files=files(picture(colour, 50 + number))).json()["images"][0]["image"]
            for number in range(4)
            for colour in ("green", "grey")
        ]
        asked = client.post("/api/images", files=files(picture("red", 99))).json()["images"][0]["image"]
        ending = threading.Event()
        models: dict[str, set[tuple]] = {}

        def read() -> int:
            count = 0
            while not ending.is_set():
                told = client.post("/api/answers?top=9", json={"images": [asked]}).json()
                seen = tuple((one["label"], round(one["score"], 5)) for one in told["answers"][0]["candidates"])
                models.setdefault(told["model"], set()).add(seen)
                table = client.get("/api/classes").json()
                models.setdefault(table["model"], set())
                assert len(client.get("/api/map").json()["points"]) in (2, 3, 4)
                count += 1
            return count

        def write(number: int) -> None:
            image, label = images[number], "colour/green" if number % 2 else "colour/grey"
            corrected = client.post("/api/correct", json={"image": image, "label": label}).json()
            known.update((corrected["before"], corrected["after"]))
            assert corrected["after"] != corrected["before"]
            if number % 3 == 0:
                moved = client.post("/api/forget", json={"image": image}).json()
                known.update((moved["before"], moved["after"]))

        with ThreadPoolExecutor(5) as pool:
            readers = [pool.submit(read) for _ in range(2)]
            writers = [pool.submit(write, number) for number in range(len(images))]
            for writer in writers:
                writer.result(60)
            ending.set()
            assert sum(reader.result(60) for reader in readers) > 0
        assert set(models) <= known  # no model was ever seen that no change had made
        assert all(len(seen) <= 1 for seen in models.values())  # and each gave one and the same answer
        info = client.get("/api/info").json()
        assert Project(service.project.path).state.hash == info["model"]
        assert info["images"] == 6 + len(images) - 3
    assert Project(service.project.path).state.hash == info["model"]


def test_two_corrections_of_one_image_at_once_leave_it_in_one_class(tmp_path):
    service = new_service(tmp_path / "m.hycal")
    with client_of(service) as client:
        teach(client)
        image = client.post("/api/images", files=files(picture("green", 1))).json()["images"][0]["image"]
        with ThreadPoolExecutor(2) as pool:
            labels = ["colour/green", "colour/lime"]
            done = list(
                pool.map(lambda label: client.post("/api/correct", json={"image": image, "label": label}), labels)
            )
        assert [answer.status_code for answer in done] == [200, 200]
        rows = {row["label"]: row["shots"] for row in client.get("/api/classes").json()["classes"]}
        assert sum(rows.get(label, 0) for label in labels) == 1


def test_nobody_takes_back_what_another_did_since(taught):
    mine = taught.post("/api/rename", json={"old": "colour/red", "new": "scarlet"}).json()
    theirs = taught.post("/api/rename", json={"old": "colour/blue", "new": "navy"}).json()
    refused = taught.post("/api/undo", json={"only_if": mine["after"]})
    assert refused.status_code == 409
    assert "nothing was taken back" in refused.json()["detail"]
    assert taught.get("/api/info").json()["model"] == theirs["after"]
    with ThreadPoolExecutor(4) as pool:  # four who mean the same change: it is taken back once
        done = list(pool.map(lambda _: taught.post("/api/undo", json={"only_if": theirs["after"]}), range(4)))
    assert sorted(answer.status_code for answer in done) == [200, 409, 409, 409]
    assert taught.post("/api/undo", json={"only_if": mine["after"]}).json()["after"] == mine["before"]
    now = taught.get("/api/info").json()["model"]
    described = taught.get("/openapi.json").json()["paths"]
    for route in ("undo", "redo"):
        body = described[f"/api/{route}"]["post"]["requestBody"]
        assert body == {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/UndoIn"}}}}
        refused = taught.post(f"/api/{route}", content=b" null", headers={"content-type": "application/json"})
        assert refused.status_code == 400 and "The body is null" in refused.json()["detail"]
    assert taught.get("/api/info").json()["model"] == now
    assert taught.post("/api/undo", json={}).status_code == 200


def test_however_many_ask_the_same_few_threads_work(tmp_path, monkeypatch):
    threads = {"look": set(), "answer": set()}

    def noting(kind, work):
        def noted(*args, **options):
            threads[kind].add(threading.get_ident())
            return work(*args, **options)

        return noted

    service = new_service(tmp_path / "m.hycal")
    monkeypatch.setattr(ColourEncoder, "encode", noting("look", ColourEncoder.encode))
    monkeypatch.setattr(HyCal, "score_rows", noting("answer", HyCal.score_rows))
    with client_of(service) as client:
        teach(client)
        row = service.state.examples[0].row.tolist()

        def ask(number: int) -> set[int]:
            seen = client.post("/api/classify", files=files(picture("green", number)))
            image = seen.json()["answers"][0]["image"]
            again = client.post("/api/answers", json={"images": [image]})
            rows = client.post("/api/classify-embeddings", json={"rows": [row]})
            changed = client.post("/api/correct", json={"image": image, "label": "colour/green"})
            return {answer.status_code for answer in (seen, again, rows, changed)}

        with ThreadPoolExecutor(8) as pool:
            assert set.union(*pool.map(ask, range(16))) == {200}
    assert len(threads["look"]) == len(threads["answer"]) == 1
