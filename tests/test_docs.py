"""The documents say what the code does."""

from __future__ import annotations

from pathlib import Path

from hycal import KLDA, METHODS, RanPAC
from hycal.testing.laws import law_table

DOCS = Path(__file__).resolve().parents[1] / "docs"


def table():
    methods = {name: method() for name, method in METHODS.items()}
    return law_table(
        {**methods, "RanPAC first-task": RanPAC(ridge="first-task"), "RanPAC joint": RanPAC(ridge="joint")}
        | {"KLDA faithful": KLDA(mode="faithful")}
    )


def test_the_law_table_is_that_of_the_methods():
    assert table() in (DOCS / "methods.md").read_text(), f"put this into docs/methods.md:\n{table()}"


def test_every_method_has_its_section():
    text = (DOCS / "methods.md").read_text()
    for method in METHODS:
        section = text.split(f"\n## {method}\n")[1].split("\n## ")[0]
        assert "Reference:" in section
        assert "Cost:" in section
        assert "Use it" in section
