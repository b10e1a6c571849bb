"""Screenshots for the documents, of drawn images only. `make screenshots` puts them into docs/images."""

from __future__ import annotations

import os
from pathlib import Path

from PIL import Image

from tests.browser.conftest import Visit, serving


def shoot(person: Visit, path: Path) -> None:
    """Take what is on the screen, once its pictures are there, with few enough colours to stay small."""
    page = person.page
    page.wait_for_load_state("networkidle")
    page.wait_for_function("() => [...document.images].every(image => image.complete)")
    page.evaluate("document.getElementById('toast').className = ''")
    page.wait_for_timeout(400)  # the message slides away
    page.screenshot(path=path)
    Image.open(path).convert("RGB").quantize(160).save(path, optimize=True)
    assert path.stat().st_size < 200_000


def fill(person: Visit, drawn: Path) -> None:
    person.teach(drawn / "planets")
    person.teach(drawn / "fabrics")
    tests = [
        drawn / "planets" / "test" / "ringed" / "ringed-8.jpg",
        drawn / "fabrics" / "test" / "dotted" / "dotted-9.jpg",
    ]
    person.ask(*tests, count=2)
    person.page.locator(".card summary").first.click()
    person.page.wait_for_selector(".evidence")


def test_screenshots(tmp_path, drawn, visit):
    folder = Path(os.environ.get("HYCAL_SCREENSHOTS") or tmp_path)
    with serving(tmp_path / "pictures.hycal") as server:
        person = visit(server.url, viewport={"width": 1000, "height": 640})
        shoot(person, folder / "page-empty.png")
        person.drop(drawn / "planets")
        person.page.wait_for_selector(".plan form")
        shoot(person, folder / "page-teach.png")
        fill(person, drawn)
        shoot(person, folder / "page-ask.png")
        person.go("classes")
        person.page.locator(".accuracy meter").first.wait_for()
        shoot(person, folder / "page-classes.png")
        dark = visit(server.url + "#map", viewport={"width": 1000, "height": 760}, color_scheme="dark")
        dark.page.wait_for_selector(".point")
        dark.page.focus(".point[tabindex='0']")
        shoot(dark, folder / "page-map-dark.png")
        phone = visit(server.url, viewport={"width": 380, "height": 780}, device_scale_factor=1.5)
        phone.ask(drawn / "planets" / "test" / "rocky" / "rocky-9.jpg", count=1)
        phone.page.locator(".card summary").first.click()
        phone.page.wait_for_selector(".evidence")
        shoot(phone, folder / "page-phone.png")
