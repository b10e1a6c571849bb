"""The model as a whole: its method and encoder, undo and redo by name, and questions before it is emptied."""

from __future__ import annotations

from tests.browser.conftest import serving

METHODS = "[aria-label='Methods']"
ENCODERS = "[aria-label='Encoders']"


def test_the_method_is_measured_and_changed_with_undo(tmp_path, drawn, visit):
    with serving(tmp_path / "m.hycal") as server:
        person = visit(server.url)
        page = person.page
        person.teach(drawn / "planets")
        page.click("#facts a")
        page.wait_for_selector("#model:not([hidden])")
        assert page.inner_text(f"{METHODS} .own strong") == "HierarchicalHyCal"
        assert page.locator("[aria-label='Use HierarchicalHyCal'], [aria-label='Use ZeroShot']").count() == 0
        page.click("[aria-label='Measure NCM']")
        page.locator("[data-method=NCM]:has-text(' of 24; on new images ')").wait_for()
        page.click("[aria-label='Use NCM']")
        person.wait_for_message("NCM answers from now on.")
        page.locator(f"{METHODS} .own[data-name=NCM]").wait_for()
        assert "NCM on builtin" in person.facts() and " of 24" in page.inner_text("[data-method=NCM]")
        assert page.inner_text("#undo") == "Undo change of method from HierarchicalHyCal to NCM"
        page.click("#undo")
        person.wait_for_message("Taken back: method: from HierarchicalHyCal to NCM")
        assert "HierarchicalHyCal on builtin" in person.facts()
        # the encoder stays, and the page says what another one needs
        assert page.locator(f"{ENCODERS} button").count() == 0
        assert "hycal learn NEW.hycal FOLDER --encoder NAME" in page.inner_text(".why")


def test_measuring_all_methods_can_be_stopped(tmp_path, drawn, visit):
    with serving(tmp_path / "m.hycal") as server:
        person = visit(server.url)
        page = person.page
        person.teach(drawn / "planets")
        person.go("model")
        held = []
        page.route("**/api/trial*", lambda route: held.append(route))
        with page.expect_request("**/api/trial*"):
            page.click("text=Measure all")
        assert page.inner_text("[data-method=HyCal]") == "measuring…"
        page.click("#model button:has-text('Stop')")
        held[0].continue_()
        page.wait_for_selector("text=Measure all")
        assert "of 24" in page.inner_text("[data-method=HyCal]") and len(held) == 1
        assert page.inner_text("[data-method=NCM]") == ""


def test_of_an_empty_model_the_encoder_and_the_method_are_free(tmp_path, drawn, visit):
    with serving(tmp_path / "m.hycal") as server:
        person = visit(server.url)
        page = person.page
        person.go("model")
        page.wait_for_selector(f"{ENCODERS} .own")
        assert page.inner_text(f"{ENCODERS} .own strong") == "builtin"
        assert "free until the first image is learned" in page.inner_text(".why")
        missing = page.locator(f"{ENCODERS} li[data-name='clip-vit-b16']")
        assert missing.locator("button").count() or "hycal encoders get" in missing.inner_text()
        page.click("[aria-label='Use HyCal']")
        person.wait_for_facts("nothing learned yet · HyCal on builtin")
        person.teach(drawn / "planets")
        assert person.facts().endswith("HyCal on builtin")


def test_undo_and_redo_are_named_and_an_empty_model_is_asked_about(tmp_path, drawn, visit):
    with serving(tmp_path / "m.hycal") as server:
        person = visit(server.url)
        page = person.page
        person.teach(drawn / "planets")
        page.click("#undo")
        assert "no class after you take back the learning of 24 images of 3 classes" in page.inner_text("dialog")
        page.click("dialog .soft")
        assert person.facts().startswith("3 classes") and page.is_hidden("#redo")
        page.click("#undo")
        page.click("dialog .main")
        person.wait_for_message("Taken back: learn: 24 images of 3 classes")
        assert page.is_disabled("#undo")
        assert page.inner_text("#redo") == "Redo learning of 24 images of 3 classes"
        page.click("#redo")
        person.wait_for_message("Made again: learn: 24 images of 3 classes")
        assert person.facts().startswith("3 classes") and page.is_hidden("#redo")
        # the keyboard does the same
        page.focus("nav a")
        page.keyboard.press("Control+z")
        page.click("dialog .main")
        person.wait_for_facts("nothing learned")
        page.keyboard.press("Control+Shift+Z")
        person.wait_for_facts("3 classes")
        # forgetting the only domain leaves nothing: the question says so
        person.go("classes")
        page.click("[aria-label='Forget domain planets']")
        assert "Nothing will be left in the model." in page.inner_text("dialog")
        page.click("dialog .soft")
        page.click("[aria-label='Forget planets/rocky']")
        assert "Nothing will be left" not in page.inner_text("dialog")
        page.click("dialog .soft")


def test_the_domain_of_a_new_class_is_asked_for(tmp_path, drawn, visit):
    with serving(tmp_path / "m.hycal") as server:
        person = visit(server.url)
        page = person.page
        person.teach(drawn / "planets")
        person.ask(drawn / "planets" / "test" / "rocky" / "rocky-8.jpg", count=1)
        page.click("button.other")
        domain = page.locator("[aria-label='Domain of the new class']").first
        page.fill("form.other input", "ringed")
        assert domain.is_hidden() and page.inner_text("form.other span") == "→ planets/ringed"
        page.fill("form.other input", "comet")
        assert domain.is_visible()
        assert page.inner_text("form.other span") == "comet is a new class. Which domain is it of?"
        page.press("form.other input", "Enter")
        assert person.facts().startswith("3 classes · 24 images")  # nothing is sent without it
        domain.fill("sky")
        domain.press("Enter")
        person.wait_for_message("Learned as sky/comet")
        assert "sky/comet" in person.classes()
