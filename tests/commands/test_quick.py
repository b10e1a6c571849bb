"""What a newcomer types first answers at once: it imports no library for numbers that it does not need."""

import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

import hycal
from examples.photos import write_digits
from hycal import classifiers, project
from hycal.cli import Commands, app
from hycal.commands._lazy import Entry

GOLDEN = Path(__file__).parents[1] / "golden"
HEAVY = {"sklearn", "scipy", "joblib", "matplotlib", "onnxruntime", "onnx", "tokenizers", "torch"}

RUN = """
import sys
from hycal.cli import app
try:
    app(sys.argv[1:], prog_name="hycal")
finally:
    print("imported:", *sys.modules)
"""


def run(*arguments: str) -> tuple[str, set[str]]:
    """Return what `hycal` says, and the libraries that it imported."""
    done = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=True)
    said, _, imported = done.stdout.rpartition("imported:")
    return said, {name.partition(".")[0] for name in imported.split()}


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["bench", "--help"], ["embed", "--help"], ["gravity", "--help"], ["predict", "--help"]],
)
def test_help_and_version_import_nothing_heavy(arguments: list[str]) -> None:
    said, imported = run(*arguments)
    assert "hycal" in said and "typer" in imported
    assert not imported & HEAVY


def test_listing_the_methods_shows_that_the_check_can_fail() -> None:
    said, imported = run("bench", "list")
    assert "TipAdapter" in said
    assert "scipy" in imported


EVERYDAY = (
    *("learn", "predict", "correct", "classes", "info", "rename", "forget", "undo", "redo", "merge", "seal", "diff"),
    *("evaluate", "gravity", "export", "serve"),
)


def test_help_of_everyday_commands_and_of_the_pile_imports_no_numbers_at_all() -> None:
    names = [*EVERYDAY, *(entry.name for entry in Commands.entries if "pile" in (entry.panel or ""))]
    assert len(names) == len(EVERYDAY) + 7
    helps = f"from hycal.cli import app\nfor name in {names}:\n    app([name, '--help'], standalone_mode=False)\n"
    code = f"{helps}import sys\nprint('imported:', *sys.modules)"
    said, _, imported = subprocess.check_output([sys.executable, "-c", code], text=True).rpartition("imported:")
    assert all(f" {name} [OPTIONS]" in said for name in names)
    assert not {name.partition(".")[0] for name in imported.split()} & {*HEAVY, "numpy", "PIL"}


def test_predict_imports_numpy_and_onnx_runtime_alone(tmp_path: Path) -> None:
    write_digits(tmp_path / "set", [3, 8], first=0, images=3)
    run("learn", str(tmp_path / "m.hycal"), str(tmp_path / "set"), "--cache", str(tmp_path / "cache"))
    image = next((tmp_path / "set" / "3").iterdir())
    said, imported = run("predict", str(tmp_path / "m.hycal"), str(image))
    assert "set/3" in said and HEAVY & imported == {"onnxruntime"}


@pytest.mark.parametrize("command", ["info", "classes", "undo"])
def test_commands_on_a_model_import_no_scikit_learn(command: str, tmp_path: Path) -> None:
    model = shutil.copy(GOLDEN / "project-v1.hycal", tmp_path)
    said, imported = run(command, str(model))
    assert said and "numpy" in imported
    assert not imported & {"sklearn", "pandas", "joblib"}


@pytest.mark.parametrize("entry", Commands.entries, ids=lambda entry: entry.name)
def test_every_command_that_help_lists_is_there(entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    listed = CliRunner().invoke(app, ["--help"]).output
    assert f" {entry.name} " in listed and entry.help in listed
    own = CliRunner().invoke(app, [entry.name, "--help"])
    assert own.exit_code == 0 and f" {entry.name} " in own.output
    assert "--install-completion" not in own.output


@pytest.mark.parametrize("arguments", [["-h"], ["learn", "-h"], ["bench", "-h"], ["bench", "run", "-h"]])
def test_a_short_option_asks_for_help(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0 and "Usage" in result.output


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0 and result.output.startswith("hycal ")


def test_a_misspelt_command_is_guessed() -> None:
    result = CliRunner().invoke(app, ["lern"])
    assert result.exit_code == 2 and "Did you mean 'learn'?" in result.output


def test_the_package_offers_every_name_though_late() -> None:
    assert {*classifiers.__all__, "load"} < set(hycal.__all__) <= set(dir(hycal))
    assert all(getattr(hycal, name) is getattr(classifiers, name) for name in classifiers.__all__)
    assert hycal.load is project.load
    with pytest.raises(AttributeError, match="no attribute 'HyKal'"):
        _ = hycal.HyKal  # type: ignore[attr-defined]


@pytest.mark.parametrize("arguments", [["-h"], ["bench", "-h"], ["predict", "-h"], ["bench", "run", "-h"]])
def test_help_shows_no_type_beside_a_flag(arguments):
    said = CliRunner().invoke(app, arguments).output
    assert "--help" in said and "bool" not in said.lower()


def test_help_fills_its_lines():
    said = CliRunner().invoke(app, ["learn", "-h"], env={"COLUMNS": "80"}).output
    paragraph = said[said.index("FOLDER holds") : said.index("Ends with 0")].split("\n")
    lines = [line.strip() for line in paragraph if line.strip()]
    assert all(len(f"{line} {after.split()[0]}") > 76 for line, after in pairwise(lines))
