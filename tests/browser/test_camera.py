"""The Camera tab, in front of Chromium's own moving test picture."""

from __future__ import annotations

from tests.browser.conftest import serving


def test_hold_to_teach_then_live_answers(tmp_path, drawn, visit):
    with serving(tmp_path / "m.hycal") as server:
        person = visit(server.url)
        page = person.page
        person.teach(drawn / "planets")
        person.go("camera")
        assert page.is_disabled("#camera button:has-text('Hold to teach')")
        page.click("text=Start the camera")
        page.wait_for_function("() => document.querySelector('video').videoWidth > 0")
        page.wait_for_selector("#camera .candidate")  # a live answer

        page.fill("#camera input", "colour")
        assert page.is_disabled("#camera button:has-text('Hold to teach')")  # a new class needs its domain
        page.fill("#camera input", "screen/colour")
        button = page.locator("#camera button:has-text('Hold to teach')")
        button.hover()
        page.mouse.down()
        page.wait_for_function("() => /^[5-9]/.test(document.querySelector('.live').textContent)")
        page.mouse.up()
        person.wait_for_message("Learned ")
        person.wait_for_facts("4 classes")
        page.wait_for_function("() => document.querySelector('#camera .candidate strong')?.textContent === 'colour'")

        person.go("ask")
        assert page.evaluate("document.querySelector('video').srcObject") is None  # leaving turns the camera off
