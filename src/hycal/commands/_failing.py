"""Errors as people want to read them: one message, code 1, no traceback."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import typer
from rich.console import Console

from hycal.commands._output import say
from hycal.errors import HyCalError

P = ParamSpec("P")
R = TypeVar("R")


def told(command: Callable[P, R]) -> Callable[P, R]:
    """Make `command` print a HyCalError, or what the system refuses, and end with code 1; the rest is a bug."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except HyCalError as error:
            message = str(error)
        except BrokenPipeError:  # `hycal ... | head`: nobody is left to tell
            raise
        except OSError as error:
            where = "" if error.filename is None else f"{error.filename}: "
            message = (
                f"{where}{error.strerror or error}. The system refused; check that the path exists, that it may be "
                "read and written, and that the disk has room."
            )
        say(Console(stderr=True), message, label="error", style="red")
        raise typer.Exit(1)

    return run
