"""The Test tab: labelled images judge the model, and nothing is learned from them."""

from __future__ import annotations

import shutil

from tests.browser.conftest import serving


def test_the_accuracy_of_each_class_and_what_is_confused(tmp_path, drawn, visit):
    with serving(tmp_path / "m.hycal") as server:
        person = visit(server.url)
        page = person.page
        person.go("test")
        assert "needs two classes" in page.inner_text("#test")
        person.teach(drawn / "planets")
        facts = person.facts()
        mixed = tmp_path / "mixed"
        shutil.copytree(drawn / "planets", mixed / "planets")
        wrong = mixed / "planets" / "test" / "rocky"
        shutil.copy(next((mixed / "planets" / "test" / "ringed").iterdir()), wrong / "a ringed one.jpg")
        shutil.copytree(drawn / "fabrics" / "test" / "dotted", mixed / "planets" / "test" / "dotted")
        (wrong / "broken.jpg").write_bytes(b"no picture")

        person.go("test")
        person.drop(mixed / "planets")
        page.wait_for_selector("#test .report h3")
        report = page.inner_text("#test .report")
        assert "of 10 images" in report and "90 % interval" in report
        assert page.locator("#test .bars li").count() == 3
        assert page.locator("#test .bars li").first.get_attribute("data-label") == "planets/rocky"  # the least accurate
        assert "1 taken for ringed" in page.locator("#test .bars li").first.inner_text()
        assert page.locator("#test .wrong li").count() >= 1
        assert "1 file cannot be used" in report
        page.locator("#test .report summary").first.click()
        listed = page.inner_text("#test .report")
        assert "24 images of the training split" in listed and "dotted, which the model has not learned" in listed
        assert person.facts() == facts


def test_images_that_were_learned_are_no_test(tmp_path, drawn, visit):
    with serving(tmp_path / "m.hycal") as server:
        person = visit(server.url)
        person.teach(drawn / "planets")
        person.go("test")
        person.drop(*sorted((drawn / "planets" / "train").iterdir()))
        person.page.wait_for_selector("#test .report h3")
        assert "24 images of these were learned" in person.page.inner_text("#test .report")
