"""Nothing that a table says is cut."""

from __future__ import annotations

import pytest
from rich.table import Table

from hycal.commands._output import print_table

NAMES = [f"a name of some length, as long as that of its neighbour, and a number {number}" for number in range(2)]


def table() -> Table:
    made = Table("class", "domain", box=None)
    for name in NAMES:
        made.add_row(name.replace(" ", "_"), name.replace(" ", "-"))
    return made


def test_in_a_pipe_a_row_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(table())
    lines = capsys.readouterr().out.splitlines()
    for name, line in zip(NAMES, lines[1:], strict=True):
        assert line.split() == [name.replace(" ", "_"), name.replace(" ", "-")]


def test_on_a_terminal_names_are_folded(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    print_table(table())
    told = capsys.readouterr().out
    assert "…" not in told and max(map(len, told.splitlines())) <= 80
    assert told.count("number") == 4
