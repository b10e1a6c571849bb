"""The documents say what the code does."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest

from hycal import KLDA, METHODS, RanPAC
from hycal.classifiers.registry import GROUP
from hycal.testing.laws import LAWS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]


def law_table(classifiers):
    """Return a Markdown table of the laws that each classifier keeps, and below it why some do not."""
    lines = [f"| law | {' | '.join(classifiers)} |", "|---|" + "---|" * len(classifiers)]
    for law in LAWS:
        cells = ["no" if law in classifier.broken_laws else "yes" for classifier in classifiers.values()]
        lines.append(f"| {law.replace('_', ' ')} | {' | '.join(cells)} |")
    lines.append("")
    for name, classifier in classifiers.items():
        reasons = {}
        for law, reason in classifier.broken_laws.items():
            reasons.setdefault(reason, []).append(law.replace("_", " "))
        lines += [f"- {name}, {', '.join(laws)}: {reason}." for reason, laws in reasons.items()]
    return "\n".join(lines).rstrip()


def table():
    methods = {name: method() for name, method in METHODS.items()}
    return law_table(
        {**methods, "RanPAC first-task": RanPAC(ridge="first-task"), "RanPAC joint": RanPAC(ridge="joint")}
        | {"KLDA faithful": KLDA(mode="faithful")}
    )


def test_the_law_table_is_that_of_the_methods():
    document = DOCS / "reference" / "methods.md"
    assert table() in document.read_text(), f"put this into {document}:\n{table()}"


def test_every_method_has_its_section():
    text = (DOCS / "reference" / "methods.md").read_text()
    for method in METHODS:
        section = text.split(f"\n## {method}\n")[1].split("\n## ")[0]
        assert "Reference:" in section
        assert "Cost:" in section
        assert "Use it" in section


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_name_and_path_in_a_document_is_there(document):
    text = document.read_text()
    if document.name == "CONTRIBUTING.md":  # its examples name what they add; tests/test_contributing.py runs them
        text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for name in set(re.findall(r"(?<![\w./])hycal(?:\.[A-Za-z_]\w*)+", text)) - {GROUP}:
        pkgutil.resolve_name(name)
    for module in set(re.findall(r"python -m ((?:benchmarks|tools)\.\w+)", text)):
        path = ROOT / module.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").exists(), module
    for path in set(re.findall(r"`((?:src|tests|tools|docs|benchmarks|examples)/[\w./-]+)`", text)):
        assert "your_" in path or (ROOT / path).exists(), path


def test_every_document_that_help_and_messages_name_is_there():
    places = [path for folder in ("src", "examples", "deploy", "benchmarks") for path in (ROOT / folder).rglob("*")]
    for path in places:
        if path.suffix in (".py", ".md", ".toml", ".html", ".js", ".yaml"):
            for name in re.findall(r"\bdocs/[\w/-]+\.(?:md|json)", path.read_text(encoding="utf-8")):
                assert (ROOT / name).exists(), f"{path} names {name}"


def test_every_discrepancy_has_one_row():
    text = (DOCS / "explanation" / "discrepancies.md").read_text()
    assert sorted(map(int, re.findall(r"^\| (\d+) \|", text, re.MULTILINE))) == list(range(1, 50))
