"""What people do on the page, from an empty model to a restart of the server."""

from __future__ import annotations

import re

from tests.browser.conftest import serving


def test_teach_ask_correct_forget_undo_reload_restart(tmp_path, photographs, visit):
    one, two = sorted(path.name for path in photographs.iterdir())
    model = tmp_path / "photos.hycal"
    with serving(model) as server:
        person = visit(server.url)
        page = person.page
        assert person.facts().startswith("nothing learned yet · ") and person.facts().endswith(" on builtin")
        assert page.is_visible(".lesson")

        # two domains by drop; each is one step, and test folders are left out
        assert person.teach(photographs / one) == "Learned 24 images of 3 classes"
        assert person.teach(photographs / two) == "Learned 24 images of 3 classes"
        assert person.facts().startswith("6 classes · 48 images · 2 domains · ")
        assert page.inner_text("#undo").startswith("Undo learning of 24 images")
        assert model.is_file()

        # ask with images that it has not seen
        tests = sorted((photographs / one / "test").iterdir())
        answers = person.ask(*tests, count=9)
        truth = [folder.name for folder in tests for _ in range(3)]
        assert sum(answer == name for answer, name in zip(answers, truth, strict=True)) >= 6, answers

        # why: two shares and the nearest images, with pictures that load
        card = page.locator(".card").first
        card.locator("summary").click()
        card.locator(".evidence .shares").first.wait_for()
        assert card.locator(".nearest").first.locator("li").count() == 3
        page.wait_for_function(
            "() => [...document.querySelectorAll('.nearest img')].every(image => image.naturalWidth > 0)"
        )

        # correct by creating a class; the model has it at once
        card.locator("button.other").click()
        card.locator("form.other [list=labels]").fill("something new")
        assert "something new is a new class. Which domain is it of?" in card.locator("form.other").inner_text()
        card.locator("form.other [list=labels]").fill(f"{one}/something new")
        card.locator("form.other [list=labels]").press("Enter")
        person.wait_for_facts("7 classes · 49 images")
        assert card.locator(".best strong").inner_text() == "something new"
        assert re.search(r"Updated in \d+ ms", card.inner_text())

        # correct by choosing another candidate
        second = page.locator(".card").nth(1)
        chosen = (
            second.locator(".choices button:not(.right):not(.other)").first.get_attribute("title").split(" (key")[0]
        )
        second.locator(".choices button:not(.right):not(.other)").first.click()
        second.locator(f"text=learned as {chosen}").wait_for()

        # the table, with accuracy and thumbnails; forget a class, and undo it
        person.wait_for_facts("7 classes · 50 images")
        before = person.classes()
        page.locator(".accuracy meter").first.wait_for()
        victim = f"{two}/{sorted(path.name for path in (photographs / two / 'train').iterdir())[0]}"
        page.click(f"[aria-label='Forget {victim}']")
        page.click("dialog .main")
        person.wait_for_facts("6 classes")
        assert person.classes() == [label for label in before if label != victim]
        page.click("#undo")
        person.wait_for_facts("7 classes")
        assert person.classes() == before

        # rename
        page.click(f"[aria-label='Rename {one}/something new']")
        page.fill("dialog input", "something known")
        page.press("dialog input", "Enter")
        page.wait_for_selector(f"tr[data-label='{one}/something known']")

        # reload: nothing lost
        facts, labels = person.facts(), person.classes()
        page.reload()
        page.wait_for_selector("body[data-ready]")
        assert (person.facts(), person.classes()) == (facts, labels)

        # a kill amid a correction that is not in the model file yet, and a new server: nothing lost
        sample = next((photographs / two / "test").rglob("*.jpg"))
        person.ask(sample, count=1)
        page.click(".card .right")
        page.wait_for_selector(".card .learned")
        person.wait_for_facts("7 classes · 51 images")
        history = person.page.evaluate("fetch('/api/history').then(answer => answer.json())")
        server.stop(9)
        server.start()
        person.open(server.url)
        assert person.facts().startswith("7 classes · 51 images")
        assert person.page.evaluate("fetch('/api/history').then(answer => answer.json())") == history
        assert person.classes() == labels

        # a card from before the restart can still be corrected: the page sends its image again
        person.ask(sample, count=1)
        server.stop()
        server.start()
        page.locator(".card .choices button:not(.right):not(.other)").first.click()
        page.wait_for_selector(".card .learned")
        assert person.page.inner_text("#facts").startswith("7 classes · 51 images")

        assert all(url.startswith((server.url, f"blob:{server.url}")) for url in person.requests)


def test_with_the_keyboard_alone(tmp_path, drawn, visit):
    with serving(tmp_path / "m.hycal") as server:
        person = visit(server.url)
        page = person.page
        person.teach(drawn / "planets")
        person.ask(drawn / "planets" / "test" / "rocky" / "rocky-8.jpg", count=1)
        page.focus(".card .right")
        page.keyboard.press("Enter")
        person.wait_for_message("Learned as planets/rocky")
        assert page.evaluate("document.activeElement.className").startswith("card")
        second = page.locator(".choices button").first.get_attribute("title").split(" (key")[0]
        page.keyboard.press("2")  # the second candidate
        person.wait_for_message(f"Learned as {second}")
        page.keyboard.press("Control+z")
        person.wait_for_message("Taken back: correct")
        person.go("map")
        page.focus(".point[tabindex='0']")
        seen = set()
        for key in ("ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "ArrowRight"):
            page.keyboard.press(key)
            seen.add(page.inner_text(".detail strong"))
        assert len(seen) > 1
        person.go("classes")
        page.focus("[aria-label='Forget planets/rocky']")
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Forget planets/rocky"
        assert "planets/rocky" in person.classes()


NAMELESS = """() => [...document.querySelectorAll('button, a, input:not([type=file]), meter, progress')]
    .filter(one => one.offsetParent && !(one.textContent.trim() || one.getAttribute('aria-label')))
    .concat([...document.querySelectorAll('img:not([alt])')]).map(one => one.outerHTML)"""


def test_fits_a_phone_and_names_everything(tmp_path, drawn, visit):
    with serving(tmp_path / "m.hycal") as server:
        person = visit(server.url, viewport={"width": 360, "height": 700}, color_scheme="dark")
        page = person.page
        person.teach(drawn / "planets")
        person.teach(drawn / "fabrics")
        person.ask(drawn / "planets" / "test" / "rocky", count=3)
        page.locator(".card summary").first.click()
        page.wait_for_selector(".evidence")
        for view in ("ask", "teach", "classes", "map", "history"):
            person.go(view)
            page.wait_for_load_state("networkidle")
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, view
            assert page.evaluate(NAMELESS) == [], view
        background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert max(map(int, re.findall(r"\d+", background)[:3])) < 64


def test_bad_files_are_named_and_the_rest_is_learned(tmp_path, drawn, visit):
    folder = tmp_path / "things"
    for name in ("banded", "rocky"):
        (folder / name).mkdir(parents=True)
        for path in sorted((drawn / "planets" / "train" / name).iterdir())[:2]:
            (folder / name / path.name).write_bytes(path.read_bytes())
    (folder / "rocky" / "notes.txt").write_text("not an image")
    with serving(tmp_path / "m.hycal") as server:
        person = visit(server.url)
        assert person.teach(folder) == "Learned 4 images of 2 classes"
        person.page.click(".report summary")
        assert "notes.txt: not an image" in person.page.inner_text(".report details")


def test_a_server_for_others_opens_with_its_token_only(tmp_path, drawn, visit, browser):
    token = "a-token-for-the-test-only"
    with serving(tmp_path / "m.hycal", "--token", token) as server:
        context = browser.new_context()
        assert context.request.get(f"{server.url}api/info").status == 401
        assert context.new_page().goto(server.url).status == 401
        context.close()
        person = visit(f"{server.url}?token={token}")
        assert token not in person.page.url
        assert person.teach(drawn / "fabrics") == "Learned 24 images of 3 classes"
        person.go("classes")
        person.page.wait_for_function(
            "() => document.querySelector('.strip img') && [...document.querySelectorAll('.strip img')]"
            ".every(image => image.naturalWidth > 0)"
        )
