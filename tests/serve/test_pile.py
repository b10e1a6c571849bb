"""The pile over HTTP: from dropped images or a folder to labels, groups, a sorted folder and a ZIP file."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import time
import zipfile

import numpy as np
import pytest
from PIL import Image

from hycal.embedding.cache import EmbeddingCache
from hycal.errors import HyCalError
from hycal.project import Project, empty_state
from hycal.project.encoder import encoder_space
from hycal.serve.pile.files import CachedRows
from hycal.serve.pile.images import ImagePile, PileLimits
from hycal.serve.pile.queue import MOST_PEOPLE, Leases
from hycal.serve.service import Service
from tests.support.encoders import ColourEncoder, TinyEncoder
from tests.support.files import tree
from tests.support.services import client_of, picture

ANNA, BEN = "a" * 32, "b" * 32
COLOURS = ("red", "green", "blue")


def service_of(tmp_path, pile: ImagePile) -> Service:
    encoder = ColourEncoder()
    project = Project(tmp_path / "m.hycal", empty_state(encoder_space(encoder), has_text=False), journal=True)
    return Service(project, encoder, pile=pile)


def fill(folder, count: int = 8):
    for colour in COLOURS:
        (folder / colour[0]).mkdir(parents=True)
        for number in range(count):
            (folder / colour[0] / f"{number}.png").write_bytes(picture(colour, number))
    return folder


def drop(client, count: int = 8) -> dict[str, str]:
    """Drop images of three colours, and wait until they are embedded; return the colour of each, by content hash."""
    sent = [(colour, number, picture(colour, number)) for number in range(count) for colour in COLOURS]
    files = [("files", (f"pile/{colour}-{number}.png", content)) for colour, number, content in sent]
    assert client.post("/api/pile/images", files=files).status_code == 200
    embedded(client)
    return colours(count)


def colours(count: int = 8) -> dict[str, str]:
    return {
        hashlib.sha256(picture(colour, number)).hexdigest(): colour for colour in COLOURS for number in range(count)
    }


def embedded(client) -> dict:
    for _ in range(3000):
        status = client.get("/api/pile").json()
        if status["embedded"] + status["skipped"] == status["total"]:
            return status
        time.sleep(0.02)
    raise AssertionError(status)


def ask(client, person: str = ANNA, most: int = 3) -> dict:
    answer = client.post("/api/pile/next", json={"person": person, "most": most})
    assert answer.status_code == 200, answer.text
    return answer.json()


def label(client, truth: dict[str, str], count: int, person: str = ANNA) -> list[dict]:
    """Label `count` images as the queue asks; return the receipts."""
    receipts = []
    for _ in range(count):
        image = ask(client, person)["images"][0]["image"]
        receipts.append(client.post("/api/correct", json={"image": image, "label": f"colour/{truth[image]}"}).json())
    return receipts


@pytest.fixture
def folder(tmp_path):
    return fill(tmp_path / "pile")


@pytest.fixture
def piled(tmp_path, folder):
    with client_of(service_of(tmp_path, ImagePile(folder))) as client:
        embedded(client)
        yield client


def test_from_an_empty_model_each_label_leads_to_the_next(client):
    truth = drop(client)
    first = ask(client)
    assert [image["candidates"] for image in first["images"]] == [[]] * 3
    assert len({truth[image["image"]] for image in first["images"][:3]}) == 3  # one of each colour first
    label(client, truth, 6)
    then = ask(client)
    pile = then["pile"]
    assert (pile["labelled"], pile["total"], pile["people"]) == (6, 24, 1)
    assert 0.3 < pile["rest"]["low"] < pile["rest"]["high"] <= 1.0
    best = [image["candidates"][0]["label"] == f"colour/{truth[image['image']]}" for image in then["images"]]
    assert all(best)
    assert all(image["learned_as"] is None for image in then["images"])


def test_no_two_people_are_asked_about_the_same_image(client):
    truth = drop(client)
    anna, ben = ({image["image"] for image in ask(client, who)["images"]} for who in (ANNA, BEN))
    assert len(anna) == len(ben) == 3 and not anna & ben
    assert {image["image"] for image in ask(client, ANNA)["images"]} == anna  # after a reload too
    label(client, truth, 1, BEN)
    assert {image["image"] for image in ask(client, ANNA)["images"]} == anna
    assert ask(client, ANNA)["pile"]["people"] == 2


def test_an_image_that_is_put_off_comes_again_at_the_end(client):
    truth = drop(client, count=2)
    put_off = ask(client)["images"][0]["image"]
    assert client.post("/api/pile/later", json={"person": ANNA, "image": put_off}).status_code == 200
    asked = []
    for _ in range(6):
        asked.append(ask(client, most=1)["images"][0]["image"])
        client.post("/api/correct", json={"image": asked[-1], "label": f"colour/{truth[asked[-1]]}"})
        if asked[-1] == put_off:
            break
    assert asked[-1] == put_off and len(asked) > 1


def test_undo_puts_the_image_back_into_the_queue(client):
    truth = drop(client)
    (receipt,) = label(client, truth, 1)
    image = receipt["answer"]["image"]
    assert image not in {one["image"] for one in ask(client)["images"]}
    assert client.post("/api/undo", json={"only_if": receipt["after"]}).status_code == 200
    assert ask(client)["pile"]["labelled"] == 0
    asked = [one["image"] for one in ask(client, most=12)["images"]]
    assert image in asked


def test_an_image_that_the_pile_lost_is_not_asked_about(tmp_path):
    service = service_of(tmp_path, ImagePile())
    with client_of(service) as client:
        drop(client)
        lost = ask(client)["images"][0]["image"]
        service.pile.drop({bytes.fromhex(lost)})
        assert lost not in {one["image"] for one in ask(client)["images"]} and len(ask(client)["images"]) == 3


def test_leases_end():
    now = [0.0]
    leases = Leases(seconds=60.0, clock=lambda: now[0])
    assert leases.take(ANNA, [b"1", b"2"], 2) == [b"1", b"2"]
    now[0] = 59.0
    assert leases.take(BEN, [b"1", b"2"], 2) == []
    assert leases.take(ANNA, [], 2) == [b"1", b"2"]  # renewed
    now[0] = 118.0
    assert leases.take(BEN, [b"1", b"2"], 2) == []
    now[0] = 120.0
    assert leases.take(BEN, [b"1", b"2"], 2) == [b"1", b"2"]
    assert leases.people == 1


def test_too_many_people_are_told():
    leases = Leases()
    order = [bytes([number]) for number in range(MOST_PEOPLE + 1)]
    assert all(leases.take(str(number), order, 1) for number in range(MOST_PEOPLE))
    with pytest.raises(HyCalError, match="Try again in some minutes"):
        leases.take("one more", order, 1)
    assert leases.take("0", order, 2) == [order[0], order[-1]]


def test_a_group_is_named_in_one_step(client):
    truth = drop(client)
    groups = client.get("/api/pile/groups").json()["groups"]
    assert [len({truth[image] for image in group["images"]}) for group in groups] == [1, 1, 1]
    assert client.get(f"/api/thumbnails/{groups[0]['images'][0]}").content.startswith(b"\xff\xd8")
    labels = dict.fromkeys(groups[0]["images"], "colour/mine")
    assert client.post("/api/learn", json={"labels": labels}).json()["images"] == {"colour/mine": 8}
    left = client.get("/api/pile/groups").json()["groups"]
    assert not {image for group in left for image in group["images"]} & set(labels)


def unzipped(answer) -> dict[str, bytes]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_download_has_every_image_and_a_table(client):
    truth = drop(client)
    label(client, truth, 6)
    found = unzipped(client.get("/api/pile/download?error=0.2"))
    rows = list(csv.DictReader(io.StringIO(found.pop("labels.csv").decode())))
    assert {row["file"] for row in rows} == set(found) and len(found) == 24
    assert all(
        row["file"].startswith((f"colour/{row['label']}/", "unsure/", "unknown/")) and row["source"].startswith("pile/")
        for row in rows
    )
    labelled = [row for row in rows if row["label"]]
    assert len(labelled) >= 6 and len([row for row in labelled if not row["confidence"]]) == 6  # the others are guesses
    assert all(row["source"].startswith(f"pile/{row['label']}-") for row in labelled)
    assert sorted(found.values()) == sorted(picture(colour, n) for colour in COLOURS for n in range(8))


def test_names_of_clients_lead_nowhere(client):
    names = ["../../evil.png", "..", "/", "a\\..\\b.png", "\x1b[31m.png", "x" * 300]
    files = [("files", (name, picture("red", number))) for number, name in enumerate(names)]
    assert client.post("/api/pile/images", files=files).status_code == 200
    embedded(client)
    label(client, dict.fromkeys((one["image"] for one in ask(client, most=6)["images"]), "red"), 2)
    client.post("/api/correct", json={"image": ask(client)["images"][0]["image"], "label": "colour/blue"})
    found = unzipped(client.get("/api/pile/download"))
    assert len(found) == 7
    for name in found:
        assert ".." not in name.split("/") and not name.startswith("/") and "\\" not in name and name.isprintable()


def test_a_folder_is_sorted_beside_itself_and_back(tmp_path, folder, piled):
    before = tree(tmp_path / "pile")
    label(piled, colours(), 4)
    done = piled.post("/api/pile/sort", json={"error": 0.2}).json()
    out = tmp_path / "pile-sorted"
    assert done["folder"] == str(out) and done["sorted"] + done["unsure"] + done["unknown"] == 24
    assert (out / "hycal-sort.jsonl").is_file() and (out / "sorted.csv").is_file()
    assert len(list(out.rglob("*.png"))) == 24
    assert piled.get("/api/pile").json()["sorted"] is True
    label(piled, colours(), 2)  # what is labelled later counts when it is sorted again
    again = piled.post("/api/pile/sort", json={"error": 0.2}).json()
    assert again["wrong"] < done["wrong"] and again["sorted"] >= done["sorted"]
    assert tree(tmp_path / "pile") == before
    assert piled.post("/api/pile/unsort").json()["folder"] == str(out)
    assert not out.exists() and tree(tmp_path / "pile") == before
    refused = piled.post("/api/pile/unsort")
    assert refused.status_code == 400 and "did not make it" in refused.json()["detail"]


def test_only_the_folder_that_was_named_is_read(tmp_path, folder):
    (tmp_path / "secret.png").write_bytes(picture("red", 99))
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "notes.txt").write_text("no image")
    with client_of(service_of(tmp_path, ImagePile(folder))) as client:
        status = embedded(client)
        assert (status["total"], status["embedded"], status["skipped"], status["folder"]) == (25, 24, 1, "pile")
        assert client.get("/api/pile/skipped").json()["files"][0]["name"] == "notes.txt"
        refused = client.post("/api/pile/images", files=[("files", ("x.png", picture("red", 50)))])
        assert refused.status_code == 400 and "nothing is added to it here" in refused.json()["detail"]
        assert client.post("/api/pile/clear").status_code == 400


def test_a_picture_is_always_a_new_jpeg(folder, piled):
    image = ask(piled)["images"][0]
    answer = piled.get(f"/api/pile/pictures/{image['image']}")
    assert answer.headers["content-type"] == "image/jpeg"
    assert Image.open(io.BytesIO(answer.content)).size == (24, 24)
    assert piled.get(f"/api/pile/pictures/{'0' * 64}").status_code == 404
    (folder / image["name"]).write_bytes(b"<svg onload='alert(1)'/>")
    assert piled.get(f"/api/pile/pictures/{image['image']}").status_code == 404


@pytest.mark.parametrize("how", ["another image", "a link out of the folder", "a pipe", "a large file"])
def test_a_file_that_became_something_else_is_not_shown(tmp_path, folder, piled, how):
    image = ask(piled)["images"][0]
    path = folder / image["name"]
    own = path.read_bytes()
    path.unlink()
    if how == "another image":
        path.write_bytes(picture("red", 99))
    elif how == "a link out of the folder":
        (tmp_path / "outside.png").write_bytes(own)
        path.symlink_to(tmp_path / "outside.png")
    elif how == "a pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(own)
        os.truncate(path, 2**40)
    assert piled.get(f"/api/pile/pictures/{image['image']}").status_code == 404


def test_an_image_that_changed_is_left_out_of_the_download(folder, piled):
    label(piled, colours(), 4)
    (folder / "r" / "0.png").write_bytes(b"another")
    (folder / "g" / "0.png").unlink()
    found = unzipped(piled.get("/api/pile/download"))
    rows = list(csv.DictReader(io.StringIO(found.pop("labels.csv").decode())))
    assert len(found) == 22
    assert {row["source"] for row in rows if row["place"] == "changed or removed"} == {"r/0.png", "g/0.png"}


def test_names_of_a_folder_that_no_archive_can_have_are_escaped(tmp_path, folder):
    names = [os.fsdecode(b"\xff.png"), "\x1b[31m.png", "a\\..\\evil.png", "100%.png"]
    for number, name in enumerate(names):
        (folder / name).write_bytes(picture("red", 50 + number))
    with client_of(service_of(tmp_path, ImagePile(folder))) as client:
        embedded(client)
        label(client, colours() | {hashlib.sha256(picture("red", 50 + n)).hexdigest(): "red" for n in range(4)}, 3)
        found = unzipped(client.get("/api/pile/download"))
    rows = list(csv.DictReader(io.StringIO(found.pop("labels.csv").decode())))
    assert len(found) == 28 and {row["file"] for row in rows} == set(found)
    last = {name.rpartition("/")[2] for name in found}
    assert last > {"%5Cudcff.png", "%5Cx1b[31m.png", "a%5C..%5Cevil.png", "100%.png"}


def test_a_dropped_pile_can_be_cleared_and_has_limits(tmp_path):
    pile = ImagePile(limits=PileLimits(images=4))
    with client_of(service_of(tmp_path, pile)) as client:
        sent = [("files", (f"{n}.png", picture("red", n))) for n in range(5)]
        refused = client.post("/api/pile/images", files=sent)
        assert refused.status_code == 400 and "The pile is full" in refused.json()["detail"]
        assert client.get("/api/pile").json()["total"] == 0
        client.post("/api/pile/images", files=sent[:4])
        embedded(client)
        kept = pile.view().images[0].file.path
        assert kept.exists()
        assert client.post("/api/pile/clear").json()["total"] == 0
        assert not kept.exists()
        refused = client.post("/api/pile/sort", json={})
        assert refused.status_code == 400 and "Download them instead" in refused.json()["detail"]
        assert client.get("/api/pile/download").status_code == 400


def test_what_is_forgotten_for_good_leaves_the_pile(client, service):
    truth = drop(client)
    (receipt,) = label(client, truth, 1)
    image = receipt["answer"]["image"]
    path = service.pile.get(bytes.fromhex(image)).file.path
    assert client.post("/api/forget", json={"image": image, "for_good": True}).status_code == 200
    assert service.pile.get(bytes.fromhex(image)) is None and not path.exists()
    assert client.get("/api/pile").json()["total"] == 23


def test_a_copy_that_waits_is_forgotten_for_good_too_until_it_is_dropped_again(client, service):
    truth = drop(client)
    (receipt,) = label(client, truth, 1)
    image = receipt["answer"]["image"]
    content = service.pile.content(service.pile.get(bytes.fromhex(image)))
    copy = [("files", ("copy.png", content))]
    service.pile._started = False
    client.post("/api/pile/images", files=copy)
    assert client.post("/api/forget", json={"image": image, "for_good": True}).status_code == 200
    service.pile.start()
    assert embedded(client)["total"] == len(truth) - 1 and service.pile.get(bytes.fromhex(image)) is None
    client.post("/api/pile/images", files=copy)
    assert embedded(client)["total"] == len(truth) and service.pile.get(bytes.fromhex(image)) is not None


def test_another_encoder_embeds_the_pile_again(client, service):
    drop(client)
    service.pile.use(type(service._learner)(service.project, TinyEncoder(dimension=48)))
    embedded(client)
    rows = service.pile.view().rows
    assert rows.shape == (24, 48)
    assert len(service.pile.view().images) == 24
    assert (rows < 0).any()  # colours have no negative numbers


class CountingEncoder(ColourEncoder):
    """Counts the images that it embeds."""

    def __init__(self) -> None:
        self.count = 0

    def encode(self, batch):
        self.count += len(batch)
        return super().encode(batch)


def serve_folder(tmp_path, folder, encoder):
    project = Project(tmp_path / "m.hycal", empty_state(encoder_space(encoder), has_text=False), journal=True)
    return client_of(Service(project, encoder, pile=ImagePile(folder)))


def rows_in(cache) -> set[bytes]:
    with EmbeddingCache.of(ColourEncoder(), cache) as kept:
        return kept.known()


def test_a_folder_is_embedded_once_and_not_again_after_a_restart(tmp_path, folder, cache):
    encoders = [CountingEncoder(), CountingEncoder()]
    for encoder in encoders:
        with serve_folder(tmp_path, folder, encoder) as client:
            assert embedded(client)["embedded"] == 24
    assert [encoder.count for encoder in encoders] == [24, 0]
    assert {key.hex() for key in rows_in(cache)} == set(colours())


def test_what_is_forgotten_for_good_is_not_in_the_cache_when_the_server_ends(tmp_path, folder, cache):
    with serve_folder(tmp_path, folder, CountingEncoder()) as client:
        embedded(client)
        (receipt,) = label(client, colours(), 1)
        image = receipt["answer"]["image"]
        assert client.post("/api/forget", json={"image": image, "for_good": True}).status_code == 200
    assert len(rows_in(cache)) == 23 and bytes.fromhex(image) not in rows_in(cache)


def test_rows_that_wait_for_the_cache_can_be_forgotten(cache):
    keys, rows = [b"a" * 32, b"b" * 32], np.eye(2, 48, dtype=np.float32)
    waiting = CachedRows.of(ColourEncoder())
    waiting.add(keys, rows)
    assert np.array_equal(waiting.get(keys[::-1]), rows[::-1]) and not rows_in(cache)
    waiting.forget(keys[:1])
    waiting.close()
    assert rows_in(cache) == {keys[1]}


def test_a_cache_that_cannot_be_used_stops_no_pile(tmp_path, folder, cache):
    cache.write_text("no folder")
    with serve_folder(tmp_path, folder, CountingEncoder()) as client:
        assert embedded(client)["embedded"] == 24


def test_what_was_dropped_stays_out_of_the_cache(client, cache):
    drop(client)
    assert not cache.exists()
