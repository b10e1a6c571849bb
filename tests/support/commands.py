"""The command line in this process, and Python in another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from typer.testing import CliRunner, Result

from hycal.cli import app
from tests.support.data import ROOT


def run_hycal(*arguments: object, stdin: str | bytes | None = None) -> Result:
    """Run `hycal` with these arguments; return its exit code and output."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def hycal(*arguments: object, code: int = 0) -> str:
    """Run `hycal`, which must end with `code`; return its standard output."""
    result = run_hycal(*arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result.stdout


def hycal_json(*arguments: object) -> Any:
    """Run `hycal ... --json`; return what it prints."""
    return json.loads(hycal(*arguments, "--json"))


def hycal_error(*arguments: object) -> str:
    """Run `hycal`, which must end with code 1; return its message in one line."""
    result = run_hycal(*arguments)
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
    return result.output.replace("\n", " ")


def run_python(*arguments: object, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments at the root of the repository, with more in its environment if given."""
    command, variables = [sys.executable, *map(str, arguments)], {**os.environ, **(environment or {})}
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=300)
