"""CONTRIBUTING.md is true: its examples of Python are added to a copy of the repository, and work there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.images import make_folder

ROOT = Path(__file__).resolve().parents[1]
GUIDE = ROOT / "CONTRIBUTING.md"
EDIT = re.compile(r"^# (?P<path>(?:src|tests)/\S+?)(?:, below `(?P<anchor>[^`]+)`)?$")


def edits():
    """Yield path, anchor and text of everything that the guide says to write."""
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        path, anchor, lines = None, None, []
        for line in block.splitlines(keepends=True):
            head = EDIT.match(line.rstrip("\n"))
            if head and path:
                yield path, anchor, "".join(lines)
            if head:
                path, anchor, lines = head["path"], head["anchor"], []
            else:
                lines.append(line)
        if path:
            yield path, anchor, "".join(lines)


def insert(text: str, anchor: str, addition: str) -> str:
    lines = text.splitlines(keepends=True)
    places = [number for number, line in enumerate(lines) if line.strip() == anchor]
    assert len(places) == 1, f"{anchor} stands in {len(places)} lines"
    return "".join([*lines[: places[0] + 1], addition, *lines[places[0] + 1 :]])


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The package and its tests, with every example of the guide."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("src", "tests", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for path, anchor, addition in edits():
        file = folder / path
        before = file.read_text() if file.exists() else ""
        file.write_text(insert(before, anchor, addition) if anchor else f"{before}\n\n{addition}".lstrip("\n"))
    return folder


def run(copy: Path, *command: str) -> str:
    settings = {"PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy}", "HYCAL_CACHE": str(copy / "cache"), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, *command], cwd=copy, env=os.environ | settings, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def hycal(copy: Path, *arguments: str) -> str:
    return run(copy, "-c", "from hycal.cli import app; app()", *arguments)


def test_the_guide_edits_as_many_files_as_it_says():
    files = [path for path, _, _ in edits()]
    assert sorted(set(files)) == [
        "src/hycal/bench/report/sections/__init__.py",
        "src/hycal/bench/report/sections/comparisons.py",
        "src/hycal/bench/report/sections/spread.py",
        "src/hycal/classifiers/__init__.py",
        "src/hycal/classifiers/manhattan.py",
        "src/hycal/cli.py",
        "src/hycal/commands/domains.py",
        "src/hycal/serve/routes.py",
        "src/hycal/serve/schemas.py",
        "tests/serve/test_routes.py",
    ]


def test_the_method_keeps_the_laws_and_is_found_everywhere(copy):
    check = re.search(r"```python\n(from hycal import Manhattan\n.*?)```", GUIDE.read_text(), re.DOTALL)
    run(copy, "-c", check[1])
    assert "Manhattan" in hycal(copy, "bench", "list")
    hycal(copy, "learn", "m.hycal", str(make_folder(copy / "photos")), "--method", "manhattan", "--yes")
    assert "Manhattan" in hycal(copy, "info", "m.hycal")


def test_the_tests_of_the_house_pass_with_the_examples(copy):
    files = ("classifiers/test_registry", "bench/test_methods", "bench/test_report", "serve/test_routes")
    asked_for = "not document_of_the_server"  # the row in docs/reference/serve.md
    run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", asked_for, *(f"tests/{name}.py" for name in files))


def test_the_command_works(copy):
    run(
        copy,
        "-c",
        "from hycal import NCM; NCM().fit([[1, 0], [0, 1]], ['a/x', 'a/y'], domain='a').save('m.safetensors')",
    )
    assert hycal(copy, "domains", "m.safetensors") == "a: 2 classes\n"
    assert "List the domains of a model." in hycal(copy, "--help")


def test_the_endpoint_passes_its_test(copy):
    tests = [name for path, _, text in edits() if path.startswith("tests/") for name in re.findall(r"def (\w+)", text)]
    assert tests
    run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/serve/test_routes.py", "-k", " or ".join(tests))


def test_the_report_has_the_sections(copy):
    hycal(copy, "bench", "run", "xd8-balanced", "--methods", "NCM", "--seeds", "1", "--jobs", "1", "--out", "results")
    code = """
from pathlib import Path
from hycal.bench.report.results import collect
from hycal.bench.report.sections import all_sections
sections = {section.anchor: section for section in all_sections(collect(Path("results")))}
(table,) = sections["spread"].blocks
print(table.title, [method for method, _ in table.rows])
(missing,) = sections["few-and-many-shots"].blocks
print(*missing.commands)
"""
    command = 'hycal bench run fscil-5 fscil-20 --methods "study:paper" --features EMBEDDINGS --out RESULTS'
    assert run(copy, "-c", code) == f"Spread: xd8-balanced ['NCM']\n{command}\n"


def test_the_examples_keep_the_rules(copy):
    run(
        copy, "-m", "ruff", "check", "--no-cache", *{str(copy / path) for path, _, _ in edits() if path.endswith(".py")}
    )
