"""The page of a read-only server and of a sealed model: what it offers works, and it offers nothing else."""

from __future__ import annotations

from typer.testing import CliRunner

from hycal.cli import app
from tests.browser.conftest import serving


def learned(folder, drawn):
    model = folder / "m.hycal"
    done = CliRunner().invoke(
        app, ["learn", str(model), str(drawn / "planets" / "train"), "--yes", "--domain", "planets"]
    )
    assert done.exit_code == 0, done.output
    return model


def test_a_read_only_page_asks_and_changes_nothing(tmp_path, drawn, visit):
    with serving(learned(tmp_path, drawn), "--read-only", "--workers", "2") as server:
        person = visit(server.url)
        page = person.page
        assert "read only" in person.facts()
        hidden = ["nav a[href='#teach']", "nav a[href='#pile']", "#undo", "#classes .actions"]
        sample = drawn / "planets" / "test" / "rocky" / "rocky-8.jpg"
        assert person.ask(sample, count=1) == ["rocky"]
        page.focus(".card")
        page.keyboard.press("2")  # elsewhere this corrects
        page.click(".card summary")
        page.wait_for_selector(".card details .evidence, .card details ul, .card details table")
        person.go("classes")
        page.wait_for_selector("#classes tbody tr")
        for selector in hidden:
            assert page.locator(selector).first.is_hidden(), selector
        assert not [url for url in person.requests if url.endswith(("/correct", "/learn", "/undo"))]


def test_a_sealed_model_has_a_table_and_a_pile(tmp_path, drawn, visit):
    sealed = tmp_path / "sealed.hycal"
    assert CliRunner().invoke(app, ["seal", str(learned(tmp_path, drawn)), "--out", str(sealed)]).exit_code == 0
    with serving(sealed, "--pile", str(drawn / "planets" / "test")) as server:
        person = visit(server.url)
        person.go("classes")
        person.page.wait_for_selector("#classes td:has-text('not measured')")
        person.go("pile")
        person.page.wait_for_selector("#pile .hand img, #pile img")
        assert "Labelled 0 of" in person.page.inner_text("#pile")
