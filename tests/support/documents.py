"""Follows a document literally: its commands, its Python and what they print, block by block in one folder."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import sys
from pathlib import Path

from typer.testing import CliRunner

from hycal.cli import app

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[tuple[str, str]]:
    """Return the language and content of each fenced block."""
    return BLOCK.findall(text)


def rounded(text: str) -> str:
    """Leave one digit of every number with a fraction, and no space at the end of a line.

    Processors round differently in the last digits; names and labels are what they are.
    """
    text = re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.0e}", text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def is_as_said(printed: str, said: str) -> bool:
    """Whether a document says what was printed; a last line of dots leaves out the rest."""
    printed, said = rounded(printed), rounded(said)
    return printed.startswith(said.removesuffix("...").strip()) if said.endswith("...") else printed == said


def run_command(line: str) -> str:
    """Run `hycal ...` or `python FILE ...` as typed in a shell of the current folder; return what it printed."""
    program, *arguments = shlex.split(line, comments=True)
    if program == "python":
        printed = io.StringIO()
        before, sys.argv = sys.argv, [arguments[0], *arguments[1:]]
        try:
            with contextlib.redirect_stdout(printed):
                runpy.run_path(str(ROOT / arguments[0]), run_name="__main__")
        finally:
            sys.argv = before
        return printed.getvalue()
    assert program == "hycal", f"a document may say hycal or python, not {line!r}"
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, (line, result.output)
    return result.stdout


def follow(text: str) -> list[str]:
    """Run every block of a document in the current folder; compare what it says is printed; return the commands."""
    names: dict[str, object] = {"__name__": "__document__"}
    printed, commands = "", []
    for language, content in blocks(text):
        if language == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(content, "document", "exec"), names)
            printed = output.getvalue()
        elif language == "sh":
            for line in filter(None, content.splitlines()):
                printed = run_command(line)
                commands.append(line)
        elif language == "text":
            assert is_as_said(printed, content), f"printed:\n{printed}\nthe document says:\n{content}"
    return commands
