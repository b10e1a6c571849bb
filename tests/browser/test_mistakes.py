"""What people do not mean: keys held down, double clicks, names of two classes, changes that others made meanwhile."""

from __future__ import annotations

from tests.browser.conftest import Visit, serving


def ask_api(person: Visit, path: str, body: dict | None = None) -> dict:
    """Ask the server as another client would, behind the back of the page."""
    options = None if body is None else {"method": "POST", "body": body}
    script = """([path, options]) => fetch(`/api/${path}`, options && { ...options, body: JSON.stringify(options.body),
        headers: { "Content-Type": "application/json" } }).then(answer => answer.json())"""
    return person.page.evaluate(script, [path, options])


def actions(person: Visit) -> list[str]:
    return [entry["action"] for entry in ask_api(person, "history")["entries"]]


def test_nothing_is_taken_back_that_nobody_meant(tmp_path, drawn, visit):
    with serving(tmp_path / "m.hycal") as server:
        person = visit(server.url)
        page = person.page
        person.teach(drawn / "planets")
        sample = drawn / "planets" / "test" / "rocky" / "rocky-8.jpg"

        # an image that was learned as this already: nothing changes, and there is nothing to undo
        person.ask(drawn / "planets" / "train" / "rocky" / "rocky-0.jpg", count=1)
        page.focus(".card")
        page.keyboard.press("1")
        person.wait_for_message("It was learned as planets/rocky already")
        assert page.locator("#toast button:has-text('Undo')").count() == 0
        assert actions(person) == ["learn"]

        # a key that is held down chooses once
        person.requests.clear()
        for _ in range(3):
            page.keyboard.down("2")
        page.keyboard.up("2")
        person.wait_for_message("Learned as")
        page.wait_for_load_state("networkidle")
        assert sum("/api/correct" in url for url in person.requests) == 1

        # a double click on Undo is one
        page.click("text=Clear")
        person.ask(sample, count=1)
        page.click(".card .right")
        person.wait_for_message("Learned as planets/rocky")  # the message before names another class
        page.dblclick("#toast button:has-text('Undo')")
        person.wait_for_message("Taken back: correct")
        page.wait_for_load_state("networkidle")
        assert actions(person) == ["undo", "correct", "correct", "learn"]
        assert sum(url.endswith("/api/undo") for url in person.requests) == 1

        # and so is a key that is held down
        for old, new in (("planets", "one"), ("one", "two"), ("two", "three")):
            ask_api(person, "rename", {"old": old, "new": new})
        person.open(server.url)
        page.keyboard.down("Control")
        for _ in range(4):
            page.keyboard.down("z")
        page.keyboard.up("z")
        page.keyboard.up("Control")
        person.wait_for_message("Taken back: rename: two to three")
        page.wait_for_load_state("networkidle")
        assert actions(person)[:2] == ["undo", "rename"]
        page.keyboard.press("Control+z")  # but pressed twice it takes back two, even at once
        page.keyboard.press("Control+z")
        person.wait_for_message("Taken back: rename: planets to one")

        # what another has done since is not taken back; the next Undo is of what the page shows by then
        person.ask(sample, count=1)
        page.click(".card .right")
        person.wait_for_message("Learned as")
        ask_api(person, "rename", {"old": "planets/ringed", "new": "saturn"})
        page.click("#toast button:has-text('Undo')")
        person.wait_for_message("The model has been changed since, so nothing was taken back.")
        assert actions(person)[:2] == ["rename", "correct"]
        assert "planets/saturn" in person.classes()
        page.keyboard.press("Control+z")
        person.wait_for_message("Taken back: rename: planets/ringed to saturn")


def test_answers_that_could_not_be_asked_again_say_so(tmp_path, drawn, visit):
    tests = drawn / "planets" / "test"
    with serving(tmp_path / "m.hycal") as server:
        person = visit(server.url)
        page = person.page
        person.teach(drawn / "planets")
        person.ask(tests / "rocky" / "rocky-8.jpg", count=1)
        server.stop()
        server.start()
        person.ask(tests / "ringed", count=4)
        page.locator(".card").first.locator("button.other").click()
        page.fill("form.other input", "planets/gas giant")
        page.press("form.other input", "Enter")
        person.wait_for_message("Learned as planets/gas giant")
        old = page.locator(".card:has-text('rocky-8')")
        old.locator("text=This answer is from before the last change").wait_for()
        assert page.locator("text=This answer is from before").count() == 1  # the others were answered anew
        for card in page.locator(".card").all()[1:3]:
            assert "gas giant" in card.inner_text()
        old.locator("text=Ask again").click()
        old.locator("text=Ask again").wait_for(state="detached")
        assert "gas giant" in old.inner_text()


def test_a_name_of_two_classes_is_asked_about_and_a_domain_is_no_class(tmp_path, drawn, visit):
    with serving(tmp_path / "m.hycal") as server:
        person = visit(server.url)
        page = person.page
        person.teach(drawn / "planets")
        for old, new in (("planets/ringed", "garden/rose"), ("planets/banded", "wild/rose")):
            ask_api(person, "rename", {"old": old, "new": new})
        person.open(server.url)
        labels = person.classes()
        person.ask(drawn / "planets" / "test" / "rocky" / "rocky-8.jpg", count=1)
        page.click("button.other")
        page.fill("form.other input", "rose")
        assert page.inner_text("form.other span") == "Which one: garden/rose, wild/rose?"
        page.press("form.other input", "Enter")
        assert page.evaluate("document.querySelector('form.other input').validationMessage").startswith("Which one")
        page.fill("form.other input", "wild/rose")
        assert page.inner_text("form.other span") == "→ wild/rose"
        page.press("form.other input", "Enter")
        person.wait_for_message("Learned as wild/rose")
        assert person.classes() == labels

        ask_api(person, "rename", {"old": "garden/rose", "new": "garden/wild"})
        person.open(server.url)
        person.go("classes")
        page.click("[aria-label='Rename domain wild']")
        page.fill("dialog input", "meadow")
        page.press("dialog input", "Enter")
        person.wait_for_message("Renamed wild to meadow")
        assert person.classes() == ["garden/wild", "meadow/rose", "planets/rocky"]
        page.click("[aria-label='Forget domain meadow']")
        page.click("dialog .main")
        person.wait_for_message("Forgot 9 images of meadow/rose")
        assert person.classes() == ["garden/wild", "planets/rocky"]
