"""Errors as people want to read them: one message, code 1, no traceback."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.markup import escape

from hycal.errors import HyCalError

P = ParamSpec("P")
R = TypeVar("R")


def told(command: Callable[P, R]) -> Callable[P, R]:
    """Make `command` print a HyCalError and end with code 1; everything else is a bug and keeps its trace."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except HyCalError as error:
            console = Console(stderr=True)
            console.print(f"[red]error[/red]: {escape(str(error))}", highlight=False, soft_wrap=True)
            raise typer.Exit(1) from None

    return run
