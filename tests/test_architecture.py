"""The house: the import contract catches what breaks it, and the documents name what there is."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tools import house, walks

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "hycal"
ROOMS = sorted(path.parent for path in SOURCE.glob("*/__init__.py"))
MOST_ROOT_MODULES = 12
SAME_LINES = 6


@pytest.fixture
def copy(tmp_path):
    """A copy of the package and of its contract, to plant faults in."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    ignore = shutil.ignore_patterns("__pycache__", "*.npz", "*.onnx", "*.safetensors")
    shutil.copytree(SOURCE, tmp_path / "src" / "hycal", ignore=ignore)
    return tmp_path


def lint_imports(folder):
    program = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "COLUMNS": "200"}
    return subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True)


def test_the_contract_holds(copy):
    done = lint_imports(copy)
    assert done.returncode == 0 and "1 kept, 0 broken" in done.stdout


@pytest.mark.parametrize(
    ("room", "forbidden"), [("state", "storage"), ("algebra", "classifiers"), ("serve", "bench"), ("project", "serve")]
)
def test_a_wrong_import_breaks_the_contract(copy, room, forbidden):
    with (copy / "src" / "hycal" / room / "__init__.py").open("a") as file:
        file.write(f"\nimport hycal.{forbidden}\n")
    done = lint_imports(copy)
    assert done.returncode == 1
    assert f"hycal.{room} is not allowed to import hycal.{forbidden}" in done.stdout


@pytest.mark.parametrize("place", ["attic.py", "attic/__init__.py"])
def test_a_module_without_a_room_breaks_the_contract(copy, place):
    path = copy / "src" / "hycal" / place
    path.parent.mkdir(exist_ok=True)
    path.write_text('"""Whatever found no room."""\n')
    done = lint_imports(copy)
    assert done.returncode == 1
    assert "hycal.attic" in done.stdout


def test_few_modules_stand_at_the_root():
    names = sorted(path.name for path in SOURCE.glob("*.py"))
    assert len(names) <= MOST_ROOT_MODULES, names


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_every_room_says_what_it_is(room):
    """What lives there; who may import it; what it never does."""
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
    what, _, rest = text.partition("\n\n")
    assert what, "the first paragraph says what lives there"
    assert len(rest.splitlines()) >= 2 and "never" in rest, "say who may import the room, and what it never does"


def test_no_six_lines_stand_twice():
    places = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        lines = list(telling_lines(path.read_text()))
        for start in range(len(lines) - SAME_LINES + 1):
            run = lines[start : start + SAME_LINES]
            places[tuple(line for _, line in run)].append(f"{path.relative_to(SOURCE)}:{run[0][0]}")
    assert not [found for found in places.values() if len(found) > 1]


def telling_lines(text):
    """Yield number and content of lines, but for imports, comments, punctuation and blank lines."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    imports = {number for node in nodes for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    for number, line in enumerate(text.splitlines(), start=1):
        if number not in imports and re.search(r"\w", line) and not re.match(r"\s*(#|>>> (from|import) )", line):
            yield number, line.strip()


def test_the_picture_of_the_house_is_current():
    text = house.DOCUMENT.read_text()
    assert text == house.written(text), "run `make house`"


def test_detours_are_left_out_of_the_picture():
    edges = {"a": frozenset("bcd"), "b": frozenset("c"), "c": frozenset("d"), "d": frozenset()}
    assert house.without_detours(edges) == {"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": set()}


@pytest.mark.parametrize("walk", walks.WALKS)
def test_the_document_names_the_files_of_each_walk(walk):
    section = house.DOCUMENT.read_text().split(f"\n## Walk: {walk}\n")[1].split("\n## ")[0]
    named = set(re.findall(r"`([\w/]+\.py)`", section))
    opened = {file for file, _ in walks.hops_of(walk, ROOT / "src")}
    assert not named ^ opened, f"{house.DOCUMENT}, {walk}: add {opened - named}, take out {named - opened}"
    assert re.search(rf"^\| {walk} \|.*\| {len(opened)} \| \d+ \|$", house.DOCUMENT.read_text(), re.MULTILINE)


@pytest.mark.parametrize("document", ["CONTRIBUTING.md", "docs/explanation/architecture.md"])
def test_every_path_in_the_guides_exists(document):
    named = re.findall(r"`((?:[\w-]+/)*[\w-]+(?:\.(?:py|md|toml)|/))`", (ROOT / document).read_text())
    assert named
    examples = {name for name in named if "your_" in name}
    missing = [name for name in set(named) - examples if not (ROOT / name).exists() and not (SOURCE / name).exists()]
    assert not missing


def test_headers_of_arrays_are_parsed_in_one_place():
    """Python 3.11 may fail at that in two threads at once, so one lock is held."""
    parses = re.compile(r"np\.load\(|read_array\(|open_memmap\(")
    assert [path.name for path in SOURCE.rglob("*.py") if parses.search(path.read_text())] == ["npz.py"]


def test_no_class_name_stands_twice():
    texts = [path.read_text() for path in SOURCE.rglob("*.py")]
    counts = Counter(name for text in texts for name in re.findall(r"^class ([A-Za-z]\w*)", text, re.MULTILINE))
    assert [name for name, count in counts.items() if count > 1] == []


def test_no_file_is_longer_than_reads_well():
    lengths = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    assert {name: length for name, length in lengths.items() if length > 350} == {}
