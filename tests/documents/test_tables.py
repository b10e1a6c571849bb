"""Figures are kept once: tables come from docs/data, and no document repeats the figures of another."""

from __future__ import annotations

import itertools
import json
import re

import pytest

from tests.support.documents import ROOT
from tools import tables

DOCUMENTS = [*tables.documents(), ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
RENDERED = re.compile(r"<!-- table: (?!end).*?<!-- table: end -->", re.DOTALL)
FIGURE = re.compile(r"(?<![\w.,])(?:\d+\.\d+(?![\w.]*\.\d)|\d{1,3}(?:,\d{3})+(?![\d,]))")
DIGITS = 3  # of a number that two measurements hardly have in common; zeros at the end of a round number do not count
BY_HAND = {"discrepancies.md"}
SHARED = 2  # figures that sentences of two documents have in common by more than chance; in rows and one document, 3


@pytest.mark.parametrize("document", tables.documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_table_is_what_its_data_says(document):
    text = document.read_text(encoding="utf-8")
    assert tables.rendered(text) == text, "run `make tables`"


def test_every_figure_that_is_kept_has_its_command_and_its_place():
    text = "".join(document.read_text(encoding="utf-8") for document in tables.documents())
    for path in tables.DATA.glob("*.json"):
        kept = json.loads(path.read_text(encoding="utf-8"))
        modules = re.findall(r"\bpython -m ([\w.]+)", kept["command"])
        assert modules or kept["command"].startswith("hycal "), kept["command"]
        for module in (name.replace(".", "/") for name in modules):
            assert (ROOT / f"{module}.py").is_file() or (ROOT / module).is_dir(), module
        starts = re.findall(rf"<!-- table: {path.stem}, (.+?)(?:; .*)? -->", text)
        for title in kept["tables"]:
            assert any(title.startswith(start) for start in starts), f"{path.name}: no document shows {title!r}"


def statements(text: str) -> list[str]:
    """Return the sentences and rows of a document that were written by hand."""
    text = re.sub(
        r"```.*?```", lambda block: block[0] if "|" not in block[0] else "", RENDERED.sub("", text), flags=re.S
    )
    rows = [line for line in text.splitlines() if line.startswith("|")]
    prose = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    return rows + re.split(r"(?<=[.:;])\s+(?=[A-Z`*])|\n\s*\n", prose.strip())


def figures(text: str) -> frozenset[str]:
    """Return the measured numbers of a statement: three digits or more, without intervals."""
    found = FIGURE.findall(re.sub(r"± [\d.]+", "", text))
    telling = {
        number: number.replace(".", "").strip("0") if "." in number else number.replace(",", "").rstrip("0")
        for number in found
    }
    return frozenset(number for number, digits in telling.items() if len(digits) >= DIGITS)


def repeated(first: str, second: str, *, shared: int = SHARED) -> bool:
    """Whether most figures of the shorter statement stand in the other one, and more than chance would put there."""
    one, other = figures(first), figures(second)
    return len(one & other) >= max(shared, 0.6 * min(len(one), len(other)))


def test_no_figure_stands_twice():
    """A measurement in two places would be changed in one of them. Tables of docs/data may have figures in common."""
    texts = {str(document.relative_to(ROOT)): document.read_text(encoding="utf-8") for document in DOCUMENTS}
    by_hand = [(name, one) for name, text in texts.items() for one in statements(text) if len(figures(one)) >= SHARED]
    from_data = [
        (name, line)
        for name, text in texts.items()
        for block in RENDERED.findall(text)
        for line in block.splitlines()
        if line.startswith("|") and len(figures(line)) >= SHARED
    ]
    pairs = itertools.chain(itertools.combinations(by_hand, 2), itertools.product(by_hand, from_data))
    twice = [
        f"{one[0]}: {one[1].strip()[:300]}\n{other[0]}: {other[1].strip()[:300]}\n"
        for one, other in pairs
        if repeated(one[1], other[1], shared=SHARED + (one[0] == other[0] or "|" in (one[1][0], other[1][0])))
        and not (one[0] == other[0] and one[1][0] == other[1][0] == "|")  # tables of one document
    ]
    assert not twice, "\n" + "\n".join(twice)


@pytest.mark.parametrize("document", tables.documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_measured_tables_come_from_data(document):
    """A row with three measured numbers is a row of a measured table; the paper's own figures are compared by hand."""
    if document.name in BY_HAND:
        return
    text = RENDERED.sub("", document.read_text(encoding="utf-8"))
    text = re.sub(r"```text.*?```", "", text, flags=re.S)  # what tutorials say is printed; tests follow them
    rows = [line for line in text.splitlines() if re.match(r"\||\s*\S.*\S {3,}\d+\.\d+", line)]
    assert not [row for row in rows if len(figures(row)) >= 3], "keep it in docs/data, see CONTRIBUTING.md"


def test_a_figure_that_stands_twice_is_found():
    assert statements("It takes 1.25 s. Others 4.5 s.\n\n| x | 1.25 |\n") == [
        "| x | 1.25 |",
        "It takes 1.25 s.",
        "Others 4.5 s.",
    ]
    assert repeated("It takes 1.25 s, 35.5 GB and 2.75 ms.", "| x | 1.25 | 2.75 ± 0.5 | 35.5 |")
    assert not repeated("It takes 1.25 s, 3.5 GB and 2.75 ms.", "| x | 1.25 | 2.25 ± 2.75 | 3.5 |")
    assert repeated("7,371 images in 1.25 s", "1.25 s for 7,371 images")
    assert not repeated("10,000 images in 1.25 s", "1.25 s for 10,000 images")


def test_printed_tables_are_read():
    printed = "\nTitle, 4 seeds: in %\n          one  two\n"
    printed += "hycal     1.5  2.0 (3.0)\nother     1.0*     -\nall in bounds\n"
    ((title, table),) = tables.printed_tables(printed)
    assert title == "Title, 4 seeds: in %"
    assert table == tables.Table(["", "one", "two"], [["hycal", "1.5", "2.0 (3.0)"], ["other", "1.0*", "-"]])
    markdown = "# A\n\n## B: in short\n\nWords.\n\n| method | last |\n| --- | --- |\n| **x** | 1.5 |\n"
    ((title, table),) = tables.printed_tables(markdown)
    assert (title, table.part(columns=["last"], rows=["x"]).rows) == ("B: in short", [["1.5"]])


def test_what_a_command_prints_takes_the_place_of_the_old_table(tmp_path, monkeypatch):
    data, document = tmp_path / "data", tmp_path / "a.md"
    data.mkdir()
    document.write_text("<!-- table: speed, Seconds -->\n<!-- table: end -->\n")
    monkeypatch.setattr(tables, "DATA", data)
    monkeypatch.setattr(tables, "documents", lambda: [document])
    tables.keep("speed", "python -m benchmarks.speed", {"Seconds, 2 runs": tables.Table(["", "s"], [["a", "1.0"]])})
    printed = tmp_path / "printed.txt"
    printed.write_text("Seconds, 3 runs\n     s\na  2.0\nb  3.0\n\nBytes\n     B\na  1\nb  2\n")
    monkeypatch.setattr("sys.argv", ["tables", "--run", "speed", "--printed", str(printed)])
    tables.main()
    assert list(tables.read("speed")) == ["Seconds, 3 runs"], "a table that no document shows is not kept"
    assert "| a | 2.0 |\n| b | 3.0 |\n<!-- table: end -->" in document.read_text()
