"""Every script of examples/ and every notebook runs in an empty folder, at the size that it has."""

from __future__ import annotations

import json
import re
import runpy

import pytest

from tests.support.documents import ROOT

PAGE = (ROOT / "docs" / "tutorials" / "notebooks.md").read_text(encoding="utf-8")
SCRIPTS = [ROOT / path for path in re.findall(r"^\| `(examples/\w+\.py)`", PAGE, re.MULTILINE)]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr("sys.argv", ["example"])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs(script, capsys):
    runpy.run_path(str(script), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed
    assert "False" not in printed, "a script that compares two ways found a difference"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook, capsys):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    content = json.loads(notebook.read_text(encoding="utf-8"))
    names: dict[str, object] = {"__name__": "__main__"}
    for number, cell in enumerate(content["cells"]):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None, "clear the outputs before it is kept"
            exec(compile("".join(cell["source"]), f"{notebook.name}, cell {number}", "exec"), names)
    pyplot.close("all")
    assert "False" not in capsys.readouterr().out


def test_every_notebook_and_script_is_told_of():
    assert all(f"../notebooks/{notebook.name}" in PAGE for notebook in NOTEBOOKS)
    assert len(SCRIPTS) >= 10 and len(NOTEBOOKS) == 5
    documents = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))
    for script in (ROOT / "examples").glob("*.py"):  # one that needs a server, say, has its document and its test
        assert f"examples/{script.name}" in documents, script
