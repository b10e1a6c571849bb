"""The command line in this process, and Python in another."""

from __future__ import annotations

import subprocess
import sys

from typer.testing import CliRunner, Result

from hycal.cli import app
from tests.support.data import ROOT


def run_hycal(*arguments: object, stdin: str | bytes | None = None) -> Result:
    """Run `hycal` with these arguments; return its exit code and output."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def run_python(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments at the root of the repository."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
