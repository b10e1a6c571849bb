"""The command line, `hycal`: each group of commands lives in `hycal.commands`."""

from __future__ import annotations

from typing import Annotated

import typer

from hycal._version import __version__
from hycal.commands import bench, data, encoders
from hycal.commands.embed import embed_command
from hycal.commands.gravity import gravity_command

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
app.command("doctor")(encoders.doctor)
app.command("embed")(embed_command)
app.command("gravity")(gravity_command)
app.add_typer(bench.app, name="bench")
app.add_typer(data.app, name="data")
app.add_typer(encoders.app, name="encoders")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"hycal {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Teach a classifier new image classes from a handful of examples."""
