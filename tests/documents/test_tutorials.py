"""Every tutorial is followed literally, in an empty folder; so are the recipes that have complete code."""

from __future__ import annotations

import pytest

from hycal.cli import Commands
from tests.support.documents import ROOT, follow

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
RECIPES = [ROOT / "docs" / "how-to" / f"{name}.md" for name in ("encoder", "data-set", "sealed")]


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("document", [*TUTORIALS, *RECIPES], ids=lambda path: path.stem)
def test_a_document_does_what_it_says(document, empty_folder):
    commands = follow(document.read_text(encoding="utf-8"))
    if document.stem == "without-code":
        shown = {command.split()[1] for command in commands}
        of_models = {entry.name for entry in Commands.entries if entry.panel == "Models"}
        assert of_models - shown <= {"gravity", "serve"}, "a command that the tutorial leaves out"
