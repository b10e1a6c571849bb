"""The command `hycal`: composes the groups of commands, and turns hycal's errors into messages."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from hycal.commands import encoders
from hycal.errors import HyCalError


class _Group(TyperGroup):
    """Prints a HyCalError as one message, without a traceback, and ends with status 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except HyCalError as error:
            typer.echo(f"hycal: {error}", err=True)
            sys.exit(1)


app = typer.Typer(
    cls=_Group,
    help="Teach a classifier new image classes from a handful of examples.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(encoders.app, name="encoders")
app.command("doctor")(encoders.doctor)
