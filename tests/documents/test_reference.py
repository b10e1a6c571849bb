"""Every public name has an example that runs, and the reference has every name, command, route and setting."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import tomllib

import pytest

from hycal.cli import Commands
from tests.support.documents import ROOT
from tools import reference

NAMES = [(package, name) for package in reference.packages() for name in reference.public_names(package)]
REFERENCE = ROOT / "docs" / "reference"


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_a_public_name_has_an_example(package, name):
    """`--doctest-modules` runs it. A class or function has it in its docstring, a constant in that of its package."""
    module = importlib.import_module(package)
    value = getattr(module, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert ">>>" in (value.__doc__ or ""), f"{reference.definition(package, name)} has no example"
    else:
        examples = re.findall(r">>> (.*)", module.__doc__ or "")
        assert any(re.search(rf"\b{name}\b", line) for line in examples), f"{package} has no example of {name}"


@pytest.mark.parametrize(
    "tool", ["tools.links", "tools.reference", "tools.tables", "benchmarks.printed", "benchmarks.perf"]
)
def test_the_examples_of_the_tools_run(tool):
    done = doctest.testmod(importlib.import_module(tool))
    assert done.attempted and not done.failed


def test_the_reference_has_every_public_name():
    text = reference.names()
    assert {"hycal", "hycal.data", "hycal.testing"} <= set(reference.packages())
    for package, name in NAMES:
        assert f"heading: {package}.{name}\n" in text or f"### {package}.{name}\n" in text


def test_the_reference_has_every_command_and_option():
    text = reference.commands()
    for entry in Commands.entries:
        assert f"### hycal {entry.name}\n" in text
    assert "#### hycal bench run\n" in text
    assert "| `--methods <str>` |" in text
    assert r"| `IMAGE\|FOLDER... <list[Path]>` |" in text


def test_the_reference_has_every_route_and_schema():
    document, text = reference.openapi(), reference.routes()
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"### {method.upper()} {path}\n" in text
    for name in document["components"]["schemas"]:
        assert f"### {name}\n" in text
    for anchor in re.findall(r"\]\(#([\w-]+)\)", text):
        assert re.search(rf"^### {anchor}$", text, re.MULTILINE | re.IGNORECASE), anchor


def test_the_settings_are_all_there():
    text = (REFERENCE / "settings.md").read_text(encoding="utf-8")
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    for variable in set(re.findall(r"\"(HYCAL_[A-Z_]+)\"", sources)):
        assert f"`{variable}`" in text, variable
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for extra in extras:
        assert f"`{extra}`" in text, extra


def test_every_document_has_its_place_in_the_site():
    listed = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert there <= listed, f"add to the nav of mkdocs.yml: {there - listed}"
    parts = {path.partition("/")[0] for path in there}
    assert parts == {"tutorials", "how-to", "reference", "explanation"}, "a document outside of the four parts"
