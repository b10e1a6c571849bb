"""Folders as people have them: with films and copies among the images, in any depth, and more than fit."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.browser.conftest import Visit, serving


def left_out(person: Visit) -> list[str]:
    person.page.click(".report summary")
    return person.page.eval_on_selector_all(".report li", "all => all.map(one => one.textContent)")


@pytest.fixture
def things(tmp_path, drawn) -> Path:
    """Two classes of two images each."""
    folder = tmp_path / "things"
    for name in ("banded", "rocky"):
        (folder / name).mkdir(parents=True)
        for path in sorted((drawn / "planets" / "train" / name).iterdir())[:2]:
            shutil.copy(path, folder / name)
    return folder


def test_files_that_are_too_large_or_twice_there_are_named_and_the_rest_is_learned(tmp_path, things, visit):
    with (things / "banded" / "0-film.mp4").open("wb") as film:
        film.truncate(70 * 2**20)
    with serving(tmp_path / "m.hycal") as server:
        person = visit(server.url)
        assert person.teach(things) == "Learned 4 images of 2 classes"
        (film_left_out,) = left_out(person)
        assert film_left_out == "things/banded/0-film.mp4: 73,400,320 bytes; the limit is 33,554,432"
        person.ask(things, count=5)
        cards = person.page.locator(".card").all_inner_texts()
        assert sum("learned as things/" in card for card in cards) == 4
        assert sum("0-film.mp4" in card and "the limit is 33,554,432" in card for card in cards) == 1
