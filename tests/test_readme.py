"""The README's example runs as it stands and prints what it says."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

from typer.testing import CliRunner

from hycal.cli import Commands, app

README = Path(__file__).parents[1] / "README.md"


def test_the_first_example_runs(tmp_path, monkeypatch, capsys):
    code = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[1]
    claimed = re.search(r"clf\.score\(.*# (0\.\d+)", code)[1]
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    printed = capsys.readouterr().out.split()[-1]
    assert f"{float(printed):.3f}" == claimed
    assert (tmp_path / "digits.safetensors").is_file()


def test_the_example_past_the_paper_runs():
    section, names = README.read_text().split("## Beyond the paper")[1], {}
    exec(re.search(r"```python\n(.*?)```", section, re.DOTALL)[1], names)
    clf, domain = names["clf"], names["domain"]
    assert clf.score(domain.test_x, [f"{names['name']}/{number}" for number in domain.test_y]) > 0.8


def rounded(text):
    """Leave one digit of every number with a fraction."""
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.0e}", text)


def test_the_tour_without_code_runs_and_shows_every_command(tmp_path, monkeypatch):
    section = README.read_text().split("## Five minutes without code")[1].split("\n## ")[0]
    tour, answers, why = re.findall(r"```\n(.*?)```", section, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYCAL_CACHE", str(tmp_path / "cache"))
    shown, said = set(), {}
    for line in tour.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        if program == "python":
            monkeypatch.setattr("sys.argv", arguments)
            runpy.run_path(str(README.parent / arguments[0]), run_name="__main__")
            continue
        result = CliRunner().invoke(app, arguments)
        assert program == "hycal" and result.exit_code == 0, (line, result.output)
        shown.add(arguments[0])
        said[" ".join(arguments)] = result.stdout
    # Processors round differently in the last digits; names and labels are what they are.
    assert rounded(said["predict digits.hycal photos/new --top 2"]) == rounded(answers)
    assert rounded(said["predict digits.hycal photos/new --explain"]).startswith(rounded(why))
    of_models = {entry.name for entry in Commands.entries if entry.panel == "Models"}
    assert of_models - shown <= {"gravity", "serve"}, "a command that the tour leaves out"
