"""Folders as people have them: with films and copies among the images, in any depth, and more than fit."""

from __future__ import annotations

import itertools
import shutil
import threading
from pathlib import Path

import pytest

from hycal.data.readers import place_of
from hycal.data.samples import split_of
from hycal.project.inputs import TO_LEARN
from tests.browser.conftest import serving


@pytest.fixture
def things(tmp_path, drawn) -> Path:
    """Two classes of two images each."""
    folder = tmp_path / "things"
    for name in ("banded", "rocky"):
        (folder / name).mkdir(parents=True)
        for path in sorted((drawn / "planets" / "train" / name).iterdir())[:2]:
            shutil.copy(path, folder / name)
    return folder


def test_what_is_too_large_or_there_twice_is_named_and_the_rest_is_learned(tmp_path, things, visit):
    with (things / "banded" / "0-film.mp4").open("wb") as film:
        film.truncate(70 * 2**20)
    (things / "copies").mkdir()
    shutil.copy(things / "banded" / "banded-0.jpg", things / "copies" / "copy.jpg")
    (things / "read me.txt").write_text("beside the class folders")
    with serving(tmp_path / "m.hycal") as server:
        person = visit(server.url)
        page = person.page
        person.drop(things)
        page.wait_for_selector(".plan form")
        assert "Left out: 1 file in no class folder." in page.inner_text(".plan form")
        page.click(".plan form button.main")
        page.click(".report summary")
        assert page.inner_text(".report h3") == "Learned 4 images of 2 classes"
        assert page.locator(".report li").all_inner_texts() == [
            "things/banded/0-film.mp4: 73,400,320 bytes; the limit is 33,554,432",
            "things/copies/copy.jpg: the same image as things/banded/banded-0.jpg, which is things/banded",
        ]
        person.ask(things / "banded", things / "rocky", count=5)
        cards = page.locator(".card").all_inner_texts()
        assert sum("learned as things/" in card for card in cards) == 4
        assert sum("0-film.mp4" in card and "the limit is 33,554,432" in card for card in cards) == 1


def test_a_model_of_one_class_names_no_percentage(tmp_path, things, visit):
    (one, *_), (other, *_) = (sorted((things / name).iterdir()) for name in ("banded", "rocky"))
    (tmp_path / "pile").mkdir()
    shutil.copy(other, tmp_path / "pile")
    shutil.rmtree(things / "rocky")
    with serving(tmp_path / "m.hycal", "--pile", str(tmp_path / "pile")) as server:
        person = visit(server.url)
        page = person.page
        person.teach(things)
        assert person.ask(one, count=1) == ["banded"]
        assert page.inner_text(".card .sure") == "the only class" and not page.locator(".card meter").count()
        person.go("pile")
        page.wait_for_selector(".stage:not([hidden]) .sure")
        assert page.inner_text(".stage .sure") == "the only class"
        assert "%" not in page.inner_text(".stage .numbered")
        page.click("text=Sort into pile-sorted")
        page.wait_for_selector("text=/are in .*pile-sorted, the only class; 0 unsure/")


def as_hycal_learn(path: str) -> list[str]:
    """The class of a file that was dropped alone, by the rule of `hycal learn`, or none if it is not learned."""
    root, *folders, _ = path.split("/")
    place = place_of(tuple(folders), root_name=root)
    above = split_of(place.domain) and place.domain == root  # what the folder above is called, the page cannot know
    return [f"{'' if above else place.domain}/{place.label}"] if place.split in TO_LEARN else []


GROUPED = """drops => import('/files.js').then(({ groupByClass }) => Promise.all(drops.map(async paths =>
    (await groupByClass(paths.map(path => ({ path })))).groups.map(({ domain, name }) => `${domain}/${name}`))))"""


def test_folders_are_read_as_hycal_learn_does_and_no_drop_is_lost(tmp_path, drawn, things, visit):
    with serving(tmp_path / "m.hycal") as server:
        person = visit(server.url)
        page = person.page
        names = ("rose", "red", "train", "Test", "validation")
        paths = [
            "/".join((root, *folders, "1.jpg"))
            for root in ("photos", "test")
            for depth in (1, 2)
            for folders in itertools.product(names, repeat=depth)
        ]
        assert page.evaluate(GROUPED, [[path] for path in paths]) == [as_hycal_learn(path) for path in paths]
        # what has no folder to be called after is left to the person; splits that lie side by side are splits
        drops = [["1.jpg"], ["rose/1.jpg", "red/1.jpg"], ["train/rose/1.jpg", "test/rose/1.jpg", "test/red/1.jpg"]]
        assert page.evaluate(GROUPED, drops) == [["/"], ["/rose", "/red"], ["/rose"]]

        # a second drop while the first is being learned
        held, free = [], threading.Event()
        page.route("**/api/images", lambda route: route.continue_() if free.is_set() else held.append(route))
        person.drop(drawn / "planets")
        with page.expect_request("**/api/images"):
            page.click(".plan form button.main")
        person.drop(things)
        page.wait_for_selector(".plan form")
        assert page.locator(".plan .running").count() == 1
        free.set()
        held[0].continue_()
        page.wait_for_selector(".report h3")
        assert page.inner_text(".report h3") == "Learned 24 images of 3 classes"
        assert page.inner_text(".plan form button.main") == "Learn 4 images of 2 classes"

        # more than the server can keep until they are learned: said before anything is sent
        page.evaluate("import('/store.js').then(({ store }) => { store.info.limits.tray = 3; })")
        person.requests.clear()
        page.click(".plan form button.main")
        person.wait_for_message("4 images are more than the server keeps, 3.")
        page.click("[aria-label='Leave out rocky']")
        page.click(".plan form button.main")
        person.wait_for_message("Nothing new in there: every image was known already")
        assert sum(url.endswith("/api/images") for url in person.requests) == 1
