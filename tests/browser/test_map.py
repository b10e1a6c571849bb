"""The map: every name can be read, on a phone too; it can be zoomed and moved."""

from __future__ import annotations

import pytest

from benchmarks.synthetic import many_classes
from hycal.encoders import load_encoder
from hycal.project.encoder import encoder_space
from tests.browser.conftest import serving

SCREENS = {"desk": {"width": 1100, "height": 800}, "phone": {"width": 380, "height": 780}}
OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll('.chart text')].map((text) => text.getBoundingClientRect());
  return boxes.some((one, number) => boxes.slice(number + 1).some((two) =>
    one.left < two.right - 2 && two.left < one.right - 2 && one.top < two.bottom - 4 && two.top < one.bottom - 4));
}"""


@pytest.mark.parametrize("screen", SCREENS)
def test_names_are_readable_and_the_map_can_be_zoomed(tmp_path, visit, screen):
    model = tmp_path / "m.hycal"
    many_classes(model, encoder_space(load_encoder("builtin")), classes=24, shots=3)
    with serving(model) as server:
        person = visit(server.url + "#map", viewport=SCREENS[screen])
        page = person.page
        page.wait_for_selector(".point")
        assert page.locator(".point").count() == 24
        assert page.locator(".chart text").count() == 24
        assert not page.evaluate(OVERLAPS)
        assert page.evaluate("document.querySelector('.chart text').getBoundingClientRect().height") > 11

        page.click("[aria-label='Zoom in']")
        page.click("[aria-label='Zoom in']")
        near = page.locator(".point").count()
        assert near < 24
        page.hover(".chart")
        page.mouse.wheel(0, -2000)
        page.wait_for_function("near => document.querySelectorAll('.point').length < near", arg=near)
        page.click("text=Whole map")
        assert page.locator(".point").count() == 24
