"""What commands print: whole tables, errors without a traceback, progress."""

from __future__ import annotations

import pytest
import typer
from rich.console import Console
from rich.table import Table

from hycal import HyCalError
from hycal.commands import _output
from hycal.commands._output import embedding_progress, print_line, print_table, progress, report_errors
from hycal.embedding.store import Tick

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


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (HyCalError("This is wrong."), "error: This is wrong.\n"),
        (OSError(28, "No space left on device", "x.npz"), "error: x.npz: No space left on device. The system refused;"),
        (OSError("odd"), "error: odd. The system refused;"),
    ],
)
def test_an_error_is_a_message_and_code_1(error: Exception, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    @report_errors
    def fail() -> None:
        raise error

    with pytest.raises(typer.Exit) as left:
        fail()
    assert left.value.exit_code == 1 and capsys.readouterr().err.startswith(message)


@pytest.mark.parametrize("error", [KeyError("x"), BrokenPipeError(), KeyboardInterrupt()])
def test_other_exceptions_propagate(error: BaseException) -> None:
    @report_errors
    def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        fail()


def test_a_line_is_no_markup_and_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_line(Console(), "[red]\x1b[31m.jpg", label="short", separator=" ")
    assert capsys.readouterr().out == "short [red]\\x1b[31m.jpg\n"


def test_progress_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def show(seconds_per_line: float) -> str:
        monkeypatch.setattr(_output, "_SECONDS_PER_LINE", seconds_per_line)
        with progress(Console(), line=lambda done, of, _: f"{done} of {of}") as watch:
            watch(1, 2)
            watch(2, 2)
        return capsys.readouterr().out

    assert show(0.0) == "1 of 2\n2 of 2\n"
    assert show(30.0) == ""


def test_embedding_shows_its_rate_and_the_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_output, "_SECONDS_PER_LINE", 0.0)
    with embedding_progress(Console(), total=2000) as watch:
        watch(Tick(2000, 2000, 1500, 0))
    said = capsys.readouterr().out
    assert said.startswith("2,000 of 2,000 images, ") and said.endswith(" images/s, 0 min left\n")
